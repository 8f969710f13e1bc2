"""Checks mcp_server.py against the server that it is configured for, with FastMCP's in-memory client.

Prints what holds, one line each; ends in exit code 1 at the first thing that doesn't.
"""

import asyncio, json, sys

import httpx2
from fastmcp import Client

import mcp_server

ADDRESS = {"name": "Ada Lovelace", "line1": "1 Market Street", "city": "San Francisco", "region": "CA",
           "postal_code": "94105", "country": "US"}
CART = {"items": [{"product_id": "MUG-BLUE", "quantity": 1}], "shipping_address": ADDRESS,
        "payment_method": "pm_sandbox_ok"}
PRODUCT = "BAG-TOTE"  # its stock is moved, and left as it was


def check(what: str, found, expected) -> None:
    if found != expected:
        sys.exit(f"FAILED  {what}: found {found!r}, expected {expected!r}")
    print(f"ok  {what}")


async def main() -> None:
    document = httpx2.get(f"{mcp_server.URL}/openapi.json").json()
    expected = {operation["operationId"]: operation["x-ai-metadata"]["mcp"]["annotations"]
                for item in document["paths"].values() for operation in item.values()}
    del expected["get_operation_status"]
    async with Client(mcp_server.mcp) as client:
        async def call(tool: str, **arguments):
            return (await client.call_tool(tool, arguments)).data

        async def replayed(tool: str, **arguments):
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            return any(mcp_server.REPLAYED in content.text for content in result.content)

        async def put(available: int, **guard):
            update = {"product_id": PRODUCT, "set": {"stock": available}} | guard
            told = await replayed("batch_update_products", mode="atomic", updates=[update])
            product = await call("get_product", product_id=PRODUCT)
            return told, product["available"]

        tools = await client.list_tools()
        found = {tool.name: tool.annotations and tool.annotations.model_dump(by_alias=True, exclude_none=True)
                 for tool in tools}
        check("mcp: every operation but get_operation_status is a tool, annotated as in the document", found, expected)
        once = [tool.name for tool in tools if mcp_server.ONCE in tool.description]
        check("mcp: the tools with a key say that an equal call isn't done again", sorted(once),
              ["batch_update_products", "issue_refund", "propose_checkout"])
        with_key = [tool.name for tool in tools if "idempotency" in json.dumps(tool.input_schema).lower()]
        check("mcp: no tool takes an Idempotency-Key", with_key, [])

        dry = await call("dry_run_checkout", **CART)
        cart = CART | {"expected_plan_digest": dry["plan_digest"]}
        first = (await call("propose_checkout", **cart))["confirmation_id"]
        second = (await call("propose_checkout", **dict(reversed(cart.items()))))["confirmation_id"]
        check("mcp: the same proposal twice is one confirmation", second, first)
        other = (await call("propose_checkout", **CART | {"payment_method": "pm_sandbox_slow"}))["confirmation_id"]
        check("mcp: another proposal is another confirmation", other == first, False)
        await call("cancel_confirmation", confirmation_id=other)

        orders = [(await call("confirm_checkout", confirmation_id=first))["order_id"] for _ in range(2)]
        check("mcp: confirmed twice, it is one order", orders[1], orders[0])
        for line1 in ("1 Market Street", "2 Market Street", "1 Market Street"):
            await call("set_shipping_address", order_id=orders[0], **ADDRESS | {"line1": line1})
        order = await call("get_order", order_id=orders[0])
        check("mcp: an address put back is back", order["shipping_address"]["line1"], "1 Market Street")

        refund = {"order_id": orders[0], "amount": {"amount": "1.00", "currency": "USD"}, "reason": "damaged"}
        told = [await replayed("issue_refund", **refund) for _ in range(2)]
        order = await call("get_order", order_id=orders[0])
        check("mcp: the same refund twice is one, and the second answer says so", (told, order["refunded"]["amount"]),
              ([False, True], "1.00"))
        many = CART | {"items": [{"product_id": PRODUCT, "quantity": 1000}]}
        told = [await replayed("propose_checkout", **many) for _ in range(2)]
        check("mcp: a refusal that is replayed says so", told, [False, True])

        before = await call("get_product", product_id=PRODUCT)
        stock, version = before["available"], before["version"]
        found = [await put(stock + 1), await put(stock), await put(stock + 1)]
        check("mcp: a catalogue write back to an earlier value isn't done, and the answer says so", found,
              [(False, stock + 1), (False, stock), (True, stock)])
        found = [await put(stock + 1, if_version=version + 2), await put(stock, if_version=version + 3)]
        check("mcp: with if_version it is done", found, [(False, stock + 1), (False, stock)])


asyncio.run(main())
