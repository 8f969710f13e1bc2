"""One purchase: dry run, propose, confirm, read the order.

Killed at any line and started again with the same RUN, it makes one order and one charge. From the environment:
RUN (required), COUNTERSIGN_URL, COUNTERSIGN_KEY, PAYMENT_METHOD, STATE. Exit code 0: bought; 1: refused;
75: not known yet, start it again with the same RUN.
"""

import json, os, random, re, sqlite3, sys, time, uuid
from decimal import Decimal
from pathlib import Path

import httpx

URL = os.environ.get("COUNTERSIGN_URL", "http://127.0.0.1:8080")
RUN = os.environ.get("RUN", "")
# Beside this file, not in the working directory: started from elsewhere, it must find the same keys.
STATE = Path(os.environ.get("STATE") or Path(__file__).resolve().parent / "state")
TIMEOUT, TOTAL, BASE, CAP, ATTEMPTS = 30, 120, 0.5, 15, 12  # seconds, but for the last

CART = {
    "items": [{"product_id": "MUG-BLUE", "quantity": 1}],
    "shipping_address": {"name": "Ada Lovelace", "line1": "1 Market Street", "city": "San Francisco",
                         "region": "CA", "postal_code": "94105", "country": "US"},
    "payment_method": os.environ.get("PAYMENT_METHOD", "pm_sandbox_ok"),
}


class Refused(Exception):
    """An answer that the same request will get again."""

    def __init__(self, status: int, problem: dict):
        self.code = problem.get("code", "no code")
        super().__init__(f"refused: {status} {self.code}: {problem.get('detail', 'not an answer of this API')}\n"
                         f"recovery: {problem.get('recovery', 'ask_human')}\n{json.dumps(problem)}")


def call(method: str, path: str, body: bytes | None = None, key: str | None = None) -> dict:
    """Sends the same bytes under the same key until the answer is one that won't change."""
    headers = ({"Content-Type": "application/json"} if body else {}) | ({"Idempotency-Key": key} if key else {})
    give_up = time.monotonic() + TOTAL
    for attempt in range(ATTEMPTS):
        floor = 0
        try:
            response = http.request(method, path, content=body, headers=headers)
        except httpx.RequestError as error:  # no answer: it may have happened all the same
            reason = type(error).__name__
        else:
            try:
                answer = dict(response.json())
            except (ValueError, TypeError):  # not this API's: a proxy's page
                answer = {}
            if response.is_success and answer:
                return answer
            status = response.status_code
            transient = response.is_success or status in (408, 429) or status >= 500
            if not transient and answer.get("recovery") != "retry_same_key":
                raise Refused(status, answer)
            reason = f"{status} {answer.get('code', '')}"
            if re.fullmatch("[0-9]+", wait := response.headers.get("Retry-After", "")):
                floor = int(wait)
        # Added to the floor: all who were told the same wait would come back together otherwise.
        pause = floor + random.uniform(0, min(CAP, BASE * 2**attempt))
        if attempt + 1 == ATTEMPTS or time.monotonic() + pause > give_up:
            break
        print(f"{method} {path}: {reason}; again in {pause:.1f} s", file=sys.stderr)
        time.sleep(pause)
    print(f"{method} {path}: {reason}; gave up. Not known yet: start again with RUN={RUN}", file=sys.stderr)
    sys.exit(75)


def written(money: dict) -> str:
    return f"{money['amount']} {money['currency']}"


def proposal(attempt: int, authorised: dict | None) -> tuple[str, bytes]:
    """This attempt's key and request, stored before they are first sent; it costs no more than what is authorised."""
    find = "SELECT key, body FROM proposals WHERE run = ? AND attempt = ?"
    if (row := db.execute(find, (RUN, attempt)).fetchone()) is None:
        dry = call("POST", "/checkout-dry-run", json.dumps(CART).encode())
        total = dry["plan"]["total"]
        print(f"total {written(total)}")
        if authorised and (total["currency"] != authorised["currency"]
                           or Decimal(total["amount"]) > Decimal(authorised["amount"])):
            sys.exit(f"stopped, nothing was charged: the total was {written(authorised)} and is {written(total)} now; "
                     "if it is wanted at that, it takes a new RUN")
        # The request is stored too: a dry run after a restart may show another plan, and the key belongs to this one.
        body = json.dumps(CART | {"expected_total": total, "expected_plan_digest": dry["plan_digest"]}).encode()
        with db:
            db.execute("INSERT INTO proposals VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                       (RUN, attempt, str(uuid.uuid4()), body))
        row = db.execute(find, (RUN, attempt)).fetchone()  # another process of this run may have been first
    stored = json.loads(row[1])
    del stored["expected_total"], stored["expected_plan_digest"]
    if stored != CART:
        sys.exit(f"RUN {RUN} asked for something else: a new purchase takes a new RUN")
    return row


def purchase() -> dict:
    authorised = None
    for attempt in (1, 2):
        key, body = proposal(attempt, authorised)
        authorised = json.loads(body)["expected_total"]
        confirmation = call("POST", "/checkout", body, key)  # in a run that goes on: the stored answer
        for warning in confirmation["warnings"]:
            print(f"warning: {warning['detail']}", file=sys.stderr)
        # Here a person or a rule says yes to confirmation["plan"] and its warnings. The next call moves money.
        try:
            confirmed = call("POST", f"/confirm-checkout/{confirmation['confirmation_id']}")
            return call("GET", f"/orders/{confirmed['order_id']}")
        except Refused as refused:
            # Expired is final and nothing was charged: another key can't buy twice. But the price may have risen, and
            # the yes was to the first total: without another one, the second attempt may not cost more.
            if refused.code != "confirmation_expired" or attempt == 2:
                raise
            print("the confirmation expired, nothing was charged: looking once more", file=sys.stderr)


if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", RUN):
    print("RUN must name this purchase: letters, digits, '.', '_' and '-', up to 100", file=sys.stderr)
    sys.exit(2)
STATE.mkdir(parents=True, exist_ok=True)
db = sqlite3.connect(STATE / "purchase.db")
db.execute("PRAGMA synchronous = EXTRA")  # with less, a power cut may undo the last commit: a key that was sent
db.execute("CREATE TABLE IF NOT EXISTS proposals"
           " (run TEXT, attempt INTEGER, key TEXT, body BLOB, PRIMARY KEY (run, attempt))")
http = httpx.Client(base_url=URL, timeout=TIMEOUT, headers={
    "Authorization": f"Bearer {os.environ.get('COUNTERSIGN_KEY', 'csk_demo_shopper')}", "Agent-Task-Id": RUN})
try:
    order = purchase()
except Refused as refused:
    sys.exit(str(refused))
print(f"order {order['order_id']} {order['status']} {written(order['total'])}")
