-- Ways to spoil the books of a story on SQLite, where every constraint is out of the way. Above each stand the
-- invariant of `countersign check` that it breaks and some of the words that say so; `theirs` are the provider's books.
-- FREE takes a table's keys off it.

-- one_row_per_id: 2 times among the orders
FREE orders;
INSERT INTO orders SELECT * FROM orders WHERE payment_id IS NULL LIMIT 1;

-- one_row_per_id: 2 times among the confirmations
FREE confirmations;
INSERT INTO confirmations SELECT * FROM confirmations WHERE status = 'pending' LIMIT 1;

-- one_row_per_id: 2 times among the refunds
FREE refunds;
INSERT INTO refunds SELECT * FROM refunds WHERE status = 'declined' LIMIT 1;

-- one_row_per_id: 2 times among the payments
FREE payments;
INSERT INTO payments SELECT * FROM payments WHERE status = 'declined' LIMIT 1;

-- one_row_per_id: times among the payments by provider key
FREE payments;
UPDATE payments SET provider_key = (SELECT max(provider_key) FROM payments) WHERE status = 'declined';

-- one_row_per_id: MUG-BLUE is there 2 times among the products
FREE products;
INSERT INTO products SELECT * FROM products WHERE product_id = 'MUG-BLUE' LIMIT 1;

-- one_row_per_id: FIRST3 is there 2 times among the discounts
FREE discounts;
INSERT INTO discounts SELECT * FROM discounts WHERE code = 'FIRST3' LIMIT 1;

-- one_row_per_id: one key is claimed more than once
FREE claims;
INSERT INTO claims SELECT * FROM claims WHERE idempotency_key = '4' LIMIT 1;

-- theirs: one_row_per_id: 2 times among the bookings
FREE ledger;
INSERT INTO ledger SELECT * FROM ledger WHERE outcome = 'declined' LIMIT 1;

-- offers_can_be_read: offers something that is no refund
UPDATE confirmations SET offer = '{}' WHERE purpose = 'refund';

-- offers_can_be_read: offers something that is no refund
UPDATE confirmations SET purpose = 'refund' WHERE status = 'confirmed';

-- one_order_per_confirmation: became more than one order
FREE orders;
INSERT INTO orders SELECT * FROM orders WHERE payment_id IS NULL LIMIT 1;
UPDATE orders SET order_id = 'ord_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e' WHERE rowid = (SELECT max(rowid) FROM orders);

-- confirmed_checkouts_are_orders: is not what cnf_
UPDATE orders SET account_id = (SELECT account_id FROM accounts WHERE name = 'elsewhere');

-- confirmed_checkouts_are_orders: is not what cnf_
UPDATE confirmations SET order_id = 'ord_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e' WHERE status = 'confirmed';

-- confirmed_checkouts_are_orders: which is cancelled
UPDATE confirmations SET status = 'cancelled' WHERE status = 'confirmed';

-- confirmed_checkouts_are_orders: is confirmed without an order
DELETE FROM orders;

-- confirmed_checkouts_are_orders: which isn't there
DELETE FROM confirmations WHERE status = 'confirmed';

-- confirmed_checkouts_are_orders: is pending and names ord_
UPDATE confirmations SET order_id = (SELECT min(order_id) FROM orders) WHERE status = 'pending';

-- orders_are_as_confirmed: has another total than its plan
UPDATE orders SET total_minor = total_minor + 1 WHERE payment_id IS NOT NULL;

-- orders_are_as_confirmed: has another plan than cnf_
UPDATE orders SET plan = json_set(plan, '$.lines[0].quantity', 3);

-- charged_is_order_total: is not paid
UPDATE orders SET payment_id = NULL;

-- charged_is_order_total: has a payment that isn't there
UPDATE orders SET payment_id = 'pay_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e' WHERE payment_id = (SELECT max(payment_id)
    FROM orders);

-- charged_is_order_total: is not what pay_
FREE orders;
UPDATE orders SET payment_id = (SELECT payment_id FROM payments WHERE status = 'declined' LIMIT 1);

-- charged_is_order_total: is not what pay_
UPDATE payments SET amount_minor = amount_minor + 1 WHERE confirmation_id IS NOT NULL;

-- charged_is_order_total: is not what pay_
FREE orders;
UPDATE orders SET payment_id = (SELECT max(payment_id) FROM orders) WHERE payment_id IS NOT NULL;

-- one_charge_per_order: has more than one payment
FREE payments;
INSERT INTO payments SELECT * FROM payments WHERE confirmation_id IS NOT NULL AND status = 'requested' LIMIT 1;
UPDATE payments SET payment_id = 'pay_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e', provider_key =
    'countersign-pay_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e' WHERE rowid = (SELECT max(rowid) FROM payments);

-- theirs: one_charge_per_order: the provider charged cnf_
FREE ledger;
INSERT INTO ledger SELECT * FROM ledger WHERE refund_of IS NULL AND outcome = 'succeeded' LIMIT 1;

-- one_payment_per_refund: has more than one payment
FREE payments;
INSERT INTO payments SELECT * FROM payments WHERE refund_id IS NOT NULL LIMIT 1;
UPDATE payments SET payment_id = 'pay_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e', provider_key =
    'countersign-pay_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e' WHERE rowid = (SELECT max(rowid) FROM payments);

-- theirs: one_payment_per_refund: the provider gave rfd_
FREE ledger;
INSERT INTO ledger SELECT * FROM ledger WHERE refund_of IS NOT NULL AND outcome = 'succeeded' LIMIT 1;

-- payments_are_decided_with_their_subject: is succeeded, what it is for is not
DELETE FROM refunds WHERE status = 'succeeded';

-- payments_are_decided_with_their_subject: is requested, what it is for is not
UPDATE confirmations SET status = 'expired' WHERE status = 'committing';

-- payments_are_decided_with_their_subject: is declined, what it is for is not
UPDATE payments SET confirmation_id = NULL WHERE status = 'declined';

-- payments_are_decided_with_their_subject: is requested, what it is for is not
UPDATE refunds SET amount_minor = amount_minor + 1 WHERE status = 'pending';

-- sent_confirmations_have_a_payment: is being confirmed without a payment
DELETE FROM payments WHERE status = 'requested';

-- sent_confirmations_have_a_payment: was declined without a payment
DELETE FROM payments WHERE status = 'declined';

-- payments_are_as_booked: differs from what the provider booked
UPDATE payments SET amount_minor = 1 WHERE status = 'succeeded';

-- payments_are_as_booked: not in the provider's books
UPDATE payments SET status = 'succeeded' WHERE status = 'requested';

-- theirs: payments_are_as_booked: not in the provider's books
DELETE FROM ledger WHERE outcome = 'succeeded';

-- theirs: payments_are_as_booked: differs from what the provider booked
UPDATE ledger SET amount_minor = amount_minor + 1;

-- theirs: payments_are_as_booked: differs from what the provider booked
UPDATE ledger SET currency = 'EUR';

-- theirs: payments_are_as_booked: differs from what the provider booked
UPDATE ledger SET outcome = 'succeeded';

-- theirs: payments_are_as_booked: differs from what the provider booked
UPDATE ledger SET refund_of = NULL;

-- bookings_were_asked_for: which we never asked for
DELETE FROM payments WHERE status = 'declined';

-- theirs: bookings_were_asked_for: which we never asked for
FREE ledger;
INSERT INTO ledger SELECT * FROM ledger WHERE refund_of IS NULL LIMIT 1;
UPDATE ledger SET provider_key = 'countersign-pay_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e' WHERE rowid = (SELECT max(rowid)
    FROM ledger);

-- leases_are_live: stale lease
UPDATE payments SET lease_owner = 'gone', lease_until = '2020-01-01 00:00:00' WHERE status = 'requested';

-- leases_are_live: is decided, and still leased
UPDATE payments SET lease_owner = 'gone', lease_until = '2200-01-01 00:00:00' WHERE status = 'succeeded';

-- undecided_payments_can_be_sent_again: needs a person
UPDATE payments SET provider_key_expires_at = '2020-01-01 00:00:00';

-- one_refund_per_key: made more than one refund
FREE refunds;
UPDATE refunds SET idempotency_key = '10' WHERE idempotency_key = '13';

-- one_refund_per_confirmation: became more than one refund
FREE refunds;
UPDATE refunds SET confirmation_id = (SELECT max(confirmation_id) FROM refunds) WHERE confirmation_id IS NOT NULL;

-- refunds_are_as_confirmed: its refund is another or has another state
UPDATE confirmations SET refund_id = (SELECT min(refund_id) FROM refunds) WHERE purpose = 'refund';

-- refunds_are_as_confirmed: which doesn't name it
UPDATE confirmations SET refund_id = NULL;

-- refunds_are_as_confirmed: its refund is another or has another state
UPDATE refunds SET amount_minor = amount_minor - 1 WHERE confirmation_id IS NOT NULL;

-- refunds_give_back_their_orders_charge: has no payment
DELETE FROM payments WHERE refund_id IS NOT NULL;

-- refunds_give_back_their_orders_charge: is of ord_
DELETE FROM orders;

-- refunds_give_back_their_orders_charge: has another currency than ord_
UPDATE refunds SET currency = 'EUR';

-- theirs: refunds_give_back_their_orders_charge: gives back another charge
UPDATE ledger SET refund_of = (SELECT min(provider_key) FROM ledger) WHERE refund_of IS NOT NULL;

-- refunded_adds_up: counts 1 as refunded, but its refunds are 0
UPDATE orders SET refunded_minor = 1 WHERE refunded_minor = 0 AND total_minor > 0;

-- refunded_adds_up: counts 0 as refunded, but its refunds are 13000
UPDATE refunds SET order_id = 'ord_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e';

-- reserved_adds_up: counts 0 as reserved, but its pending and offered refunds are 20000
UPDATE orders SET reserved_minor = 0;

-- reserved_adds_up: counts 20000 as reserved, but its pending and offered refunds are 0
DELETE FROM refund_holds;

-- offered_refunds_are_reserved: should reserve 20000 of ord_
DELETE FROM refund_holds;
UPDATE orders SET reserved_minor = 0;

-- offered_refunds_are_reserved: should reserve 0 of ord_
UPDATE confirmations SET status = 'expired' WHERE purpose = 'refund' AND status = 'pending';

-- offered_refunds_are_reserved: but reserves 40000
FREE refund_holds;
INSERT INTO refund_holds SELECT * FROM refund_holds WHERE amount_minor > 0 LIMIT 1;

-- refunded_within_total: don't fit into
UPDATE orders SET reserved_minor = total_minor - refunded_minor + 1;

-- refunded_within_total: don't fit into 0
UPDATE orders SET reserved_minor = -1 WHERE total_minor = 0;

-- theirs: given_back_within_charge: gave 200000 back
UPDATE ledger SET amount_minor = 100000 WHERE refund_of IS NOT NULL AND outcome = 'succeeded';

-- theirs: given_back_within_charge: took 0 USD with
UPDATE ledger SET outcome = 'declined' WHERE refund_of IS NULL;

-- stock_adds_up: MUG-BLUE: 54 units were set and 6 sold, but 49 are in stock
UPDATE products SET stock = stock + 1 WHERE product_id = 'MUG-BLUE';

-- stock_adds_up: there is no such product
DELETE FROM products WHERE product_id = 'MUG-BLUE';

-- stock_holds_add_up: MUG-BLUE: 3 are counted as held, but the holds are 2
UPDATE products SET held = held + 1 WHERE product_id = 'MUG-BLUE';

-- stock_holds_add_up: should hold 0 of MUG-BLUE, but holds 2
UPDATE confirmations SET status = 'cancelled' WHERE status = 'pending';

-- stock_holds_add_up: should hold 2 of MUG-BLUE, but holds 0
DELETE FROM stock_holds WHERE product_id = 'MUG-BLUE';
UPDATE products SET held = 0 WHERE product_id = 'MUG-BLUE';

-- held_within_stock: units are held, and
UPDATE products SET held = stock + 1 WHERE product_id = 'MUG-BLUE';

-- held_within_stock: -1 units are held
UPDATE products SET held = -1 WHERE product_id = 'MUG-BLUE';

-- discount_uses_add_up: WELCOME10: 2 uses are counted, but 1 orders have it
UPDATE discounts SET used = used + 1 WHERE code = 'WELCOME10';

-- discount_uses_add_up: WELCOME10: 0 uses are counted, but 1 orders have it
DELETE FROM discounts WHERE code = 'WELCOME10';

-- discount_holds_add_up: FIRST3: 0 are counted as held, but the holds are 1
UPDATE discounts SET held = 0 WHERE code = 'FIRST3';

-- discount_holds_add_up: should hold 1 of FIRST3, but holds 0
DELETE FROM discount_holds;
UPDATE discounts SET held = 0;

-- discount_uses_within_limit: FIRST3: 0 uses and 1 held don't fit into 0
UPDATE discounts SET use_limit = 0 WHERE code = 'FIRST3';

-- one_undecided_attempt: has more than one undecided attempt
DROP INDEX one_undecided_attempt;
UPDATE confirmations SET status = 'committing', attempt_digest = (SELECT attempt_digest FROM confirmations WHERE
    status = 'committing') WHERE status = 'pending';

-- one_key_per_confirmation: was made by 0 keys
DELETE FROM claims WHERE idempotency_key = '4';

-- one_key_per_confirmation: was made by 2 keys
UPDATE claims SET resource = (SELECT resource FROM claims WHERE idempotency_key = '4') WHERE idempotency_key = '5';

-- one_key_per_confirmation: which isn't there
DELETE FROM confirmations WHERE status = 'cancelled';

-- local_keys_are_answered: for batch_update_products has no answer
UPDATE claims SET answer_status = NULL, answer_body = NULL WHERE idempotency_key = '6';

-- answers_are_kept_their_time: for propose_checkout has lost its answer
UPDATE claims SET answer_body = NULL WHERE idempotency_key = '4';

-- open_keys_are_in_flight: no undecided refund stands behind it
UPDATE claims SET resource = NULL WHERE idempotency_key = '17';

-- open_keys_are_in_flight: no undecided refund stands behind it
UPDATE claims SET answer_status = NULL, answer_body = NULL WHERE idempotency_key = '10';

-- open_keys_are_in_flight: no undecided refund stands behind it
DELETE FROM payments WHERE status = 'requested';

-- open_keys_are_in_flight: nothing was confirmed with it
UPDATE claims SET resource = (SELECT resource FROM claims WHERE idempotency_key = '4') WHERE idempotency_key =
    'confirm';

-- open_keys_are_in_flight: nothing was confirmed with it
UPDATE claims SET operation = 'confirm_refund' WHERE idempotency_key = 'confirm';

-- refund_keys_are_answered_with_their_refund: is decided, but its key has no answer
UPDATE claims SET answer_status = NULL, answer_body = NULL WHERE idempotency_key = '10';

-- refund_keys_are_answered_with_their_refund: is not decided, but its key has an answer
UPDATE claims SET answer_status = 201, answer_body = '{}' WHERE idempotency_key = '17';

-- refund_keys_are_answered_with_their_refund: by a key that nobody has claimed
DELETE FROM claims WHERE idempotency_key = '10';

-- refund_keys_are_answered_with_their_refund: which it made
UPDATE claims SET resource = NULL WHERE idempotency_key = '13';

-- only_decisions_are_stored: keeps 503 overloaded, which is never stored
UPDATE claims SET answer_status = 503, answer_body = '{"code": "overloaded", "status": 503}' WHERE idempotency_key =
    '4';

-- only_decisions_are_stored: keeps 409 attempt_pending, which is never stored
UPDATE claims SET answer_body = json_set(answer_body, '$.code', 'attempt_pending') WHERE idempotency_key =
    'refused';

-- only_decisions_are_stored: keeps 409 refund_exceeds_remaining, which is never stored
UPDATE claims SET answer_body = json_set(answer_body, '$.code', 'refund_exceeds_remaining') WHERE idempotency_key =
    'refused';

-- only_decisions_are_stored: keeps 404 insufficient_stock, which is never stored
UPDATE claims SET answer_status = 404 WHERE idempotency_key = 'refused';

-- only_decisions_are_stored: has an answer that can't be read
UPDATE claims SET answer_body = 'out of stock' WHERE idempotency_key = 'refused';

-- only_decisions_are_stored: has an answer without a status
UPDATE claims SET answer_status = NULL WHERE idempotency_key = '6';

-- only_decisions_are_stored: has an answer that can't be read
UPDATE claims SET answer_status = 201 WHERE idempotency_key = '6';

-- only_decisions_are_stored: which has no place there
UPDATE claims SET answer_status = 200, answer_body = '{}' WHERE idempotency_key = 'confirm';

-- decided_confirmations_are_answered: is confirmed, its answer is not
UPDATE confirmations SET answer_status = NULL, answer_body = NULL WHERE status = 'confirmed';

-- decided_confirmations_are_answered: is declined, its answer is not
UPDATE confirmations SET answer_body = NULL WHERE status = 'declined';

-- decided_confirmations_are_answered: is declined, its answer is not: 200
UPDATE confirmations SET answer_status = 200 WHERE status = 'declined';

-- decided_confirmations_are_answered: is pending, its answer is not: 200
UPDATE confirmations SET answer_status = 200, answer_body = '{}' WHERE status = 'pending';

-- proposals_answer_with_their_confirmation: differ in offer
UPDATE claims SET answer_body = json_set(answer_body, '$.total.amount', '1.00') WHERE idempotency_key = '1';

-- proposals_answer_with_their_confirmation: differ in offer
UPDATE claims SET answer_body = json_set(answer_body, '$.plan.lines[0].quantity', 3) WHERE idempotency_key = '1';

-- proposals_answer_with_their_confirmation: differ in offer
UPDATE claims SET answer_body = json_set(answer_body, '$.amount.amount', '1.00') WHERE idempotency_key = '11';

-- proposals_answer_with_their_confirmation: differ in status
UPDATE claims SET answer_body = json_set(answer_body, '$.status', 'confirmed') WHERE idempotency_key = '4';

-- proposals_answer_with_their_confirmation: differ in expires_at
UPDATE confirmations SET expires_at = '2200-01-01 00:00:00';

-- proposals_answer_with_their_confirmation: differ in plan_digest
UPDATE confirmations SET plan_digest = (SELECT max(plan_digest) FROM confirmations);

-- proposals_answer_with_their_confirmation: differ in location
UPDATE claims SET answer_location = NULL WHERE idempotency_key = '4';

-- proposals_answer_with_their_confirmation: differ in actor
UPDATE claims SET actor_id = (SELECT actor_id FROM claims WHERE idempotency_key = '10') WHERE idempotency_key = '4';

-- proposals_answer_with_their_confirmation: which isn't there
DELETE FROM confirmations WHERE status = 'cancelled';

-- proposals_answer_with_their_confirmation: has an answer that can't be read
UPDATE claims SET answer_body = '{' WHERE idempotency_key = '4';

-- confirms_answer_with_their_order: differ in total
UPDATE confirmations SET answer_body = json_set(answer_body, '$.total.amount', '1.00') WHERE purpose = 'checkout'
    AND status = 'confirmed';

-- confirms_answer_with_their_order: differ in payment
UPDATE confirmations SET answer_body = json_set(answer_body, '$.payment', NULL) WHERE purpose = 'checkout' AND
    status = 'confirmed';

-- confirms_answer_with_their_order: has an answer that can't be read
UPDATE confirmations SET answer_body = json_set(answer_body, '$.payment.status', 'lost') WHERE purpose = 'checkout'
    AND status = 'confirmed';

-- confirms_answer_with_their_order: differ in payment.amount
UPDATE confirmations SET answer_body = json_set(answer_body, '$.payment.amount.amount', '1.00') WHERE purpose =
    'checkout' AND status = 'confirmed';

-- confirms_answer_with_their_order: differ in status
UPDATE confirmations SET answer_body = json_set(answer_body, '$.status', 'refunded') WHERE purpose = 'checkout' AND
    status = 'confirmed';

-- confirms_answer_with_their_order: differ in plan
UPDATE confirmations SET answer_body = json_set(answer_body, '$.plan.shipping_option', 'express') WHERE purpose =
    'checkout' AND status = 'confirmed';

-- confirms_answer_with_their_order: differ in order_id, confirmation_id
UPDATE confirmations SET answer_body = json_set(answer_body, '$.order_id', (SELECT max(order_id) FROM orders)) WHERE
    purpose = 'checkout' AND status = 'confirmed';

-- confirms_answer_with_their_order: which isn't there
DELETE FROM orders;

-- declines_answer_with_their_confirmation: differ in code
UPDATE confirmations SET answer_body = json_set(answer_body, '$.code', 'refund_declined') WHERE purpose = 'checkout'
    AND status = 'declined';

-- declines_answer_with_their_confirmation: differ in confirmation_id
UPDATE confirmations SET answer_body = json_remove(answer_body, '$.confirmation_id') WHERE purpose = 'checkout' AND
    status = 'declined';

-- declines_answer_with_their_confirmation: has an answer that can't be read
UPDATE confirmations SET answer_body = '' WHERE purpose = 'checkout' AND status = 'declined';

-- refunds_answer_with_their_refund: differ in amount
UPDATE claims SET answer_body = json_set(answer_body, '$.amount.amount', '1.00') WHERE idempotency_key = '10';

-- refunds_answer_with_their_refund: differ in status
UPDATE claims SET answer_body = json_set(answer_body, '$.status', 'pending') WHERE idempotency_key = '10';

-- refunds_answer_with_their_refund: has an answer that can't be read
UPDATE claims SET answer_body = '' WHERE idempotency_key = '10';

-- refunds_answer_with_their_refund: differ in order_id, amount, status
UPDATE claims SET answer_body = json_set(answer_body, '$.refund_id', (SELECT max(refund_id) FROM refunds)) WHERE
    idempotency_key = '10';

-- refunds_answer_with_their_refund: differ in location
UPDATE claims SET answer_location = NULL WHERE idempotency_key = '10';

-- refunds_answer_with_their_refund: differ in reason
UPDATE refunds SET note = 'Another' WHERE idempotency_key = '10';

-- refunds_answer_with_their_refund: which isn't there
DELETE FROM refunds;

-- refunds_answer_with_their_refund: differ in order_id
UPDATE claims SET answer_body = json_set(answer_body, '$.order_id', (SELECT min(order_id) FROM orders)) WHERE
    idempotency_key = '13';

-- refunds_answer_with_their_refund: differ in status
UPDATE refunds SET status = 'succeeded' WHERE idempotency_key = '13';

-- refunds_answer_with_their_refund: differ in resource
UPDATE claims SET resource = NULL WHERE idempotency_key = '13';

-- refunds_answer_with_their_refund: differ in key
FREE refunds;
UPDATE refunds SET idempotency_key = '17' WHERE idempotency_key = '13';

-- refund_confirms_answer_with_their_refund: differ in amount
UPDATE confirmations SET answer_body = json_set(answer_body, '$.amount.amount', '1.00') WHERE purpose = 'refund' AND
    status = 'confirmed';

-- refund_confirms_answer_with_their_refund: differ in refund_id
UPDATE confirmations SET refund_id = (SELECT min(refund_id) FROM refunds) WHERE purpose = 'refund';

-- refund_confirms_answer_with_their_refund: names no refund
UPDATE confirmations SET answer_body = json_remove(answer_body, '$.refund_id') WHERE purpose = 'refund' AND status =
    'declined';

-- refund_confirms_answer_with_their_refund: differ in code
UPDATE confirmations SET answer_body = json_set(answer_body, '$.code', 'payment_declined') WHERE purpose = 'refund'
    AND status = 'declined';

-- cancels_answer_with_their_confirmation: cancelled what isn't cancelled
UPDATE confirmations SET status = 'expired' WHERE status = 'cancelled';

-- batch_updates_answer_with_their_products: wrote version 2 of MUG-BLUE, which has 1
UPDATE products SET version = 1;

-- batch_updates_answer_with_their_products: wrote MUG-GREEN, which isn't there
DELETE FROM products WHERE product_id = 'MUG-GREEN';

-- batch_updates_answer_with_their_products: has an answer that can't be read
UPDATE claims SET answer_body = '[]' WHERE idempotency_key = '6';

-- addresses_answer_with_their_order: which isn't there
DELETE FROM orders;

-- addresses_answer_with_their_order: is about something else
UPDATE claims SET resource = NULL WHERE idempotency_key = 'address';
