#!/usr/bin/env bash
# What a million keys, confirmations and orders cost on PostgreSQL, and that the hot path's plans stay index look-ups:
#
#     scripts/with-postgres benches/million_keys.sh
#
# Prints each plan's access, then the size of the tables. Needs psql and a built binary.
set -euo pipefail
cd "$(dirname "$0")/.."
SERVER=${COUNTERSIGN_TEST_POSTGRES:?run it through scripts/with-postgres}
BASE=${SERVER%/*}
BINARY=${BINARY:-target/debug/countersign}
ROWS=${ROWS:-1000000}
sql() { psql -qAt -v ON_ERROR_STOP=1 "$BASE/million" "$@"; }

psql -qAt "$SERVER" -c 'CREATE DATABASE million' -c 'CREATE DATABASE sandbox'
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
"$BINARY" serve --demo --bind 127.0.0.1:0 --database-url "$BASE/million" --sandbox-url "$BASE/sandbox" \
    --worker-interval 1h >"$DIR/out" 2>/dev/null &
PID=$!
until URL=$(grep -o 'http://[0-9.:]*' "$DIR/out" | head -1) && [ -n "$URL" ]; do sleep 0.1; done
CART='{"items":[{"product_id":"MUG-BLUE","quantity":2}],"shipping_address":{"name":"A","line1":"1","city":"S",
       "postal_code":"9","country":"US"},"payment_method":"pm_sandbox_ok"}'
ask() { curl -sf -H 'Authorization: Bearer csk_demo_shopper' -H 'Content-Type: application/json' "$@"; }
ID=$(ask "$URL/checkout" -H 'Idempotency-Key: real' -d "$CART" | grep -o 'cnf_[0-9a-f]*' | head -1)
ask -X POST "$URL/confirm-checkout/$ID" >/dev/null
kill $PID

# Copies of that real purchase, with ids and keys of their own; foreign keys aren't what is measured.
sql <<SQL
SET session_replication_role = replica;
INSERT INTO claims
SELECT actor_id, 'key-' || i, operation, fingerprint, 1, NULL, resource, created_at, expires_at, answer_status, answer_body,
    answer_location
FROM claims, generate_series(1, $ROWS) AS i WHERE idempotency_key = 'real';
INSERT INTO confirmations
SELECT 'cnf_' || md5('c' || i), actor_id, account_id, purpose, status, offer, plan_digest, 'sha256:' || md5('a' || i), warnings,
    NULL, created_at, expires_at, 'ord_' || md5('o' || i), NULL, answer_status, answer_body
FROM confirmations, generate_series(1, $ROWS) AS i WHERE order_id IS NOT NULL;
INSERT INTO orders
SELECT 'ord_' || md5('o' || i), 'cnf_' || md5('c' || i), actor_id, account_id, 'sha256:' || md5('a' || i), plan, total_minor, 0, 0,
    currency, shipping_address, NULL, created_at
FROM orders, generate_series(1, $ROWS) AS i;
INSERT INTO payments
SELECT 'pay_' || md5('p' || i), 'cnf_' || md5('c' || i), NULL, 'countersign-pay_' || md5('p' || i), request, amount_minor, currency,
    status, decline_reason, provider_key_expires_at, NULL, NULL, attempts, recover_at, created_at, decided_at
FROM payments, generate_series(1, $ROWS) AS i;
VACUUM ANALYZE;
SQL

plan() { printf '%-60.60s  %s\n' "$1" "$(sql -c "EXPLAIN $1" | grep -o '\(Index\|Bitmap Index\|Seq\)[A-Za-z ]*Scan[a-z ]*[a-z_]*' | sort -u | tr '\n' ';')"; }
plan "SELECT * FROM claims WHERE actor_id = 'a' AND idempotency_key = 'k'"
plan "UPDATE claims SET answer_status = 1 WHERE actor_id = 'a' AND idempotency_key = 'k'"
plan "SELECT * FROM claims WHERE expires_at <= now() AND answer_body IS NOT NULL ORDER BY expires_at LIMIT 200"
plan "SELECT * FROM confirmations WHERE confirmation_id = 'c'"
plan "UPDATE confirmations SET status = 'committing' WHERE confirmation_id = 'c' AND status = 'pending'"
plan "SELECT 1 FROM confirmations WHERE actor_id = 'a' AND attempt_digest = 'd' AND status = 'committing'"
plan "SELECT 1 FROM confirmations WHERE status = 'pending' AND expires_at <= now() ORDER BY expires_at LIMIT 50"
plan "SELECT * FROM orders WHERE order_id = 'o'"
plan "SELECT 1 FROM orders WHERE actor_id = 'a' AND attempt_digest = 'd' AND created_at > now() ORDER BY created_at DESC LIMIT 1"
plan "SELECT * FROM orders WHERE account_id = 'a' ORDER BY order_id DESC LIMIT 21"
plan "SELECT 1 FROM payments WHERE confirmation_id = 'c'"
sql -F ' ' <<'SQL'
SELECT relname, 'rows', pg_size_pretty(pg_table_size(oid)), 'indexes', pg_size_pretty(pg_indexes_size(oid))
FROM pg_class WHERE relname IN ('claims', 'confirmations', 'orders', 'payments') ORDER BY 1;
SELECT 'a stored answer has', length(answer_body), 'bytes' FROM claims WHERE idempotency_key = 'real';
UPDATE claims SET answer_body = NULL WHERE idempotency_key <> 'real';
VACUUM FULL claims;
SELECT 'claims when swept', pg_size_pretty(pg_table_size('claims')), 'indexes', pg_size_pretty(pg_indexes_size('claims'));
SQL
