"""Countersign's operations as MCP tools, over stdio. The model neither writes nor sees an Idempotency-Key.

From the environment: RUN (required: one for each task, kept when the task goes on), COUNTERSIGN_URL, COUNTERSIGN_KEY.
Two equal calls of a run are one effect: the second gets the first one's answer, and a text beside it says so. What is
meant to happen twice takes two runs, and so does a proposal that is to be made again, unchanged, because the first one
expired or was declined. A catalogue write back to an earlier value takes `if_version`: with it, it is another call.
Equal means the same JSON, whatever the order of its members. 25 and "25.00" are two calls, with two keys.
"""

import hashlib, json, os
from contextvars import ContextVar

import httpx2
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware
from mcp.types import TextContent, ToolAnnotations

URL, RUN = os.environ.get("COUNTERSIGN_URL", "http://127.0.0.1:8080").rstrip("/"), os.environ["RUN"]
ONCE = "\n\nAn equal call of the same run isn't done again: it gets the first one's answer."
REPLAYED = "Replayed: this is the answer to an equal call before. Nothing was done now."

spec = httpx2.get(f"{URL}/openapi.json").raise_for_status().json()
# It asks by key, and the model has none. To learn what became of a call, it makes the same call again.
del spec["paths"]["/operation-status"]
KEYED = {(method.upper(), path) for path, item in spec["paths"].items() for method, operation in item.items()
         if operation["x-ai-metadata"]["idempotency"]["key"] == "required"}
for operation in [operation for item in spec["paths"].values() for operation in item.values()]:
    # Without its headers, which are what the operations share and refer to.
    operation["parameters"] = [p for p in operation["parameters"] if p.get("in", "header") != "header"]

notes = ContextVar("notes")  # on the running tool call: FastMCP passes on an answer's body, not its headers


async def add_key(request):
    # Not where a key is optional: a PUT back to an earlier value would be answered as that PUT's repeat, not done.
    if (request.method, request.url.path) in KEYED:
        call = json.dumps([RUN, request.method, request.url.path, json.loads(request.content)], sort_keys=True)
        request.headers["Idempotency-Key"] = hashlib.sha256(call.encode()).hexdigest()


async def note_replay(response):
    if response.headers.get("Idempotent-Replayed") == "true":
        notes.get().append(REPLAYED)


class ShowNotes(Middleware):
    async def on_call_tool(self, context, call_next):
        notes.set(own := [])
        try:
            result = await call_next(context)
        except ToolError as error:  # a refusal can be a replay too: for want of stock, say, that has come in since
            raise ToolError("\n".join([str(error), *own])) from error
        result.content += [TextContent(type="text", text=note) for note in own]  # its JSON stays as documented
        return result


def describe(route, tool):
    tool.annotations = ToolAnnotations(**route.extensions["x-ai-metadata"]["mcp"]["annotations"])
    if (route.method, route.path) in KEYED:
        tool.description += ONCE


hooks = {"request": [add_key], "response": [note_replay]}
client = httpx2.AsyncClient(base_url=URL, timeout=30, event_hooks=hooks, headers={
    "Authorization": f"Bearer {os.environ.get('COUNTERSIGN_KEY', 'csk_demo_shopper')}", "Agent-Task-Id": RUN})
# Outputs aren't validated: FastMCP knows one schema a tool, and issue_refund has two (201, 202). What was done must not
# look like an error.
mcp = FastMCP.from_openapi(spec, client, name="Countersign", mcp_component_fn=describe, validate_output=False,
                           middleware=[ShowNotes()])

if __name__ == "__main__":
    mcp.run()
