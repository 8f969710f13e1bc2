"""What the document can't say to a generator of requests."""

import uuid

import schemathesis

EXAMPLE_KEY = "order-7f3a-step-2"


@schemathesis.hook
def map_headers(context, headers):
    """One key names one request: the document's example, sent with every request, would be refused as a reuse."""
    if headers and headers.get("Idempotency-Key") == EXAMPLE_KEY:
        headers["Idempotency-Key"] = str(uuid.uuid4())
    return headers


def whole(value):
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {name: whole(item) for name, item in value.items()}
    return value


@schemathesis.hook
def map_body(context, body):
    """JSON Schema lets 30.0 pass as an integer. This API takes integers without a fraction."""
    return whole(body)
