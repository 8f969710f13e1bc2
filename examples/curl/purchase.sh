#!/usr/bin/env bash
# One purchase: dry run, propose, confirm, read the order.
#
# Killed at any line and started again with the same RUN, it makes one order and one charge. From the environment:
# RUN (required), COUNTERSIGN_URL, COUNTERSIGN_KEY, PAYMENT_METHOD, STATE. Exit code 0: bought; 1: refused;
# 75: not known yet, start it again with the same RUN.
set -euo pipefail

URL=${COUNTERSIGN_URL:-http://127.0.0.1:8080}
URL=${URL%/}
RUN=${RUN:-}
PAYMENT_METHOD=${PAYMENT_METHOD:-pm_sandbox_ok}
# Beside this file, not in the working directory: started from elsewhere, it must find the same keys.
STATE=${STATE:-$(cd "$(dirname "$0")" && pwd)/state}
TIMEOUT=30 TOTAL=120 BASE=500 CAP=15000 ATTEMPTS=12   # seconds, seconds, milliseconds, milliseconds

say() { printf '%s\n' "$*" >&2; }

if ! [[ $RUN =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$ && $PAYMENT_METHOD =~ ^[A-Za-z0-9_]+$ ]]; then
    say "RUN must name this purchase: letters, digits, '.', '_' and '-', up to 100; PAYMENT_METHOD is a word"
    exit 2
fi
CART='{"items": [{"product_id": "MUG-BLUE", "quantity": 1}],
 "shipping_address": {"name": "Ada Lovelace", "line1": "1 Market Street", "city": "San Francisco", "region": "CA",
                      "postal_code": "94105", "country": "US"},
 "payment_method": "'$PAYMENT_METHOD'"'   # left open for expected_total and expected_plan_digest

mkdir -p "$STATE"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# What the last answer says: the first string member of this name.
member() {
    local pattern="\"$1\": ?\"(([^\"\\\\]|\\\\.)*)\""
    [[ $(<"$tmp/answer") =~ $pattern ]] && printf '%s' "${BASH_REMATCH[1]}"
}
# total FILE: the last amount in it that is called total or expected_total.
total() {
    local pattern='.*"(expected_)?total": ?\{"amount": ?"([0-9.]+)", ?"currency": ?"([A-Z]+)"\}'
    [[ $(<"$1") =~ $pattern ]] && printf '%s %s' "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
}

# within TOTAL AUTHORISED: it is no more, in the same currency, all of whose amounts have the same number of decimals.
within() {
    local total=${1% *} authorised=${2% *}
    [ "${1#* }" = "${2#* }" ] && ((10#${total/./} <= 10#${authorised/./}))
}

new_uuid() { cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen; }

# From a file descriptor: an argument would show the credential to everybody who lists processes.
credential() { printf 'header = "Authorization: Bearer %s"\n' "${COUNTERSIGN_KEY:-csk_demo_shopper}"; }

# call METHOD PATH [BODY_FILE [KEY]]: sends the same bytes under the same key until the answer, left in $tmp/answer, is
# one that won't change. Returns 1 if it is a refusal.
call() {
    local method=$1 path=$2 body=${3:-} key=${4:-} attempt reason floor cap pause give_up=$((SECONDS + TOTAL))
    local request=(-sS -X "$method" --max-time "$TIMEOUT" -H "Agent-Task-Id: $RUN" -w '%{http_code}')
    if [ -n "$body" ]; then request+=(-H 'Content-Type: application/json' --data-binary "@$body"); fi
    if [ -n "$key" ]; then request+=(-H "Idempotency-Key: $key"); fi
    for ((attempt = 1; ; attempt++)); do
        : >"$tmp/headers"
        : >"$tmp/answer"
        if status=$(curl --config <(credential) "${request[@]}" -D "$tmp/headers" -o "$tmp/answer" "$URL$path"); then
            case $status in
            2??) if [ "$(head -c 1 "$tmp/answer")" = '{' ]; then return 0; fi ;;   # else a proxy's page
            408 | 429 | 5??) ;;
            *) if [ "$(member recovery)" != retry_same_key ]; then return 1; fi ;;
            esac
            reason="$status $(member code)"
        else
            reason='no answer'   # it may have happened all the same
        fi
        floor=$(tr -d '\r' <"$tmp/headers" | awk 'tolower($1) == "retry-after:" && $2 ~ /^[0-9]+$/ { print $2; exit }')
        cap=$((attempt > 10 ? CAP : BASE << (attempt - 1)))
        cap=$((cap < CAP ? cap : CAP))
        # Added to the floor: all who were told the same wait would come back together otherwise.
        pause=$((10#${floor:-0} * 1000 + (RANDOM << 15 | RANDOM) % (cap + 1)))
        if ((attempt == ATTEMPTS || SECONDS + pause / 1000 >= give_up)); then
            say "$method $path: $reason; gave up. Not known yet: start again with RUN=$RUN"
            exit 75
        fi
        say "$method $path: $reason; again in $pause ms"
        sleep "$((pause / 1000)).$(printf %03d $((pause % 1000)))"
    done
}

refused() {
    say "refused: $status $(member code || echo 'no code'): $(member detail || echo 'not an answer of this API')"
    say "recovery: $(member recovery || echo ask_human)"
    say "$(<"$tmp/answer")"
    exit 1
}

# proposal ATTEMPT [AUTHORISED]: this attempt's $key and request ($tmp/proposal), stored before they are first sent; it
# costs no more than what is authorised.
proposal() {
    local file=$STATE/$RUN.propose-$1 authorised=${2:-} total draft
    if [ ! -e "$file" ]; then
        printf '%s}' "$CART" >"$tmp/cart"
        call POST /checkout-dry-run "$tmp/cart" || refused
        total=$(total "$tmp/answer") || refused
        echo "total $total"
        if [ -n "$authorised" ] && ! within "$total" "$authorised"; then
            say "stopped, nothing was charged: the total was $authorised and is $total now;" \
                "if it is wanted at that, it takes a new RUN"
            exit 1
        fi
        # The request is stored too: a dry run after a restart may show another plan, and the key belongs to this one.
        key=$(new_uuid)
        draft=$(mktemp "$STATE/.draft.XXXXXX")
        printf '%s\n%s, "expected_total": {"amount": "%s", "currency": "%s"}, "expected_plan_digest": "%s"}' \
            "$key" "$CART" "${total% *}" "${total#* }" "$(member plan_digest)" >"$draft"
        sync "$draft"
        # Whole or not at all, and never over another: a second process of this run may be here as well.
        ln "$draft" "$file" || [ -e "$file" ]
        rm "$draft"
    fi
    sync "$STATE"
    key=$(head -n 1 "$file")
    tail -n +2 "$file" >"$tmp/proposal"
    if [[ $(<"$tmp/proposal") != "$CART, "* ]]; then
        say "RUN $RUN asked for something else: a new purchase takes a new RUN"
        exit 1
    fi
}

authorised=
for attempt in 1 2; do
    proposal "$attempt" "$authorised"
    authorised=$(total "$tmp/proposal")
    call POST /checkout "$tmp/proposal" "$key" || refused   # in a run that goes on: the stored answer
    if grep -q '"code":"looks_like_recent_order"' "$tmp/answer"; then say "warning: $(member detail)"; fi
    # Here a person or a rule says yes to the plan and its warnings. The next call moves money.
    if call POST "/confirm-checkout/$(member confirmation_id)"; then break; fi
    # Expired is final and nothing was charged: another key can't buy twice. But the price may have risen, and the yes
    # was to the first total: without another one, the second attempt may not cost more.
    if [ "$(member code)" != confirmation_expired ] || [ "$attempt" = 2 ]; then refused; fi
    say 'the confirmation expired, nothing was charged: looking once more'
done
call GET "/orders/$(member order_id)" || refused
echo "order $(member order_id) $(member status) $(total "$tmp/answer")"
