-- What is reserved for refunds that are pending or offered; the rest of the total is what can still be refunded.
ALTER TABLE orders ADD COLUMN reserved_minor BIGINT NOT NULL DEFAULT 0
    CHECK (reserved_minor >= 0 AND refunded_minor + reserved_minor <= total_minor);

-- A confirmation offers a checkout or a refund: it ends in an order, or has a refund from when it is confirmed on.
CREATE TABLE new_confirmations (
    confirmation_id TEXT PRIMARY KEY NOT NULL,
    actor_id TEXT NOT NULL REFERENCES actors,
    account_id TEXT NOT NULL REFERENCES accounts,
    -- What it is an offer to do.
    purpose TEXT NOT NULL CHECK (purpose IN ('checkout', 'refund')),
    status TEXT NOT NULL
        CHECK (status IN ('pending', 'committing', 'confirmed', 'declined', 'cancelled', 'expired')),
    -- The checkout's plan, or the refund as it was offered.
    offer TEXT NOT NULL,
    plan_digest TEXT NOT NULL,
    attempt_digest TEXT NOT NULL,
    warnings TEXT NOT NULL,
    task_id TEXT,
    created_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    order_id TEXT,
    refund_id TEXT,
    -- What confirming it answered, once decided; kept as long as the order exists.
    answer_status BIGINT,
    answer_body TEXT,
    CHECK ((answer_status IS NOT NULL) = (status IN ('confirmed', 'declined'))),
    CHECK ((order_id IS NOT NULL) = (status = 'confirmed' AND purpose = 'checkout')),
    CHECK (refund_id IS NULL OR purpose = 'refund')
);
INSERT INTO new_confirmations
SELECT
    confirmation_id, actor_id, account_id, purpose, status, plan, plan_digest, attempt_digest, warnings, task_id,
    created_at, expires_at, order_id, NULL, answer_status, answer_body
FROM confirmations;
DROP TABLE confirmations;
ALTER TABLE new_confirmations RENAME TO confirmations;
CREATE UNIQUE INDEX one_undecided_attempt ON confirmations (actor_id, attempt_digest) WHERE status = 'committing';
CREATE INDEX confirmations_by_deadline ON confirmations (status, expires_at);
CREATE INDEX confirmations_by_actor ON confirmations (actor_id, status, expires_at);
CREATE INDEX confirmations_of_actor ON confirmations (actor_id, confirmation_id);
CREATE INDEX refund_confirmations_of_account ON confirmations (account_id, confirmation_id) WHERE purpose = 'refund';

-- What a pending refund confirmation reserves of an order. Deleted when it is freed or becomes a refund.
CREATE TABLE refund_holds (
    confirmation_id TEXT PRIMARY KEY NOT NULL REFERENCES confirmations,
    order_id TEXT NOT NULL REFERENCES orders,
    amount_minor BIGINT NOT NULL CHECK (amount_minor > 0)
);
CREATE INDEX refund_holds_by_order ON refund_holds (order_id);

-- Refunds that were sent to the provider. 'pending' until its word is known.
CREATE TABLE refunds (
    refund_id TEXT PRIMARY KEY NOT NULL,
    order_id TEXT NOT NULL REFERENCES orders,
    actor_id TEXT NOT NULL REFERENCES actors,
    -- It was asked for twice; or else its answer stands on the claim of this key of the actor's.
    confirmation_id TEXT UNIQUE REFERENCES confirmations,
    idempotency_key TEXT,
    amount_minor BIGINT NOT NULL CHECK (amount_minor > 0),
    currency TEXT NOT NULL,
    reason TEXT NOT NULL CHECK (reason IN ('damaged', 'not_as_described', 'late', 'other')),
    note TEXT,
    status TEXT NOT NULL CHECK (status IN ('pending', 'succeeded', 'declined')),
    created_at TIMESTAMP NOT NULL,
    decided_at TIMESTAMP,
    CHECK ((confirmation_id IS NULL) <> (idempotency_key IS NULL)),
    CHECK ((decided_at IS NOT NULL) = (status <> 'pending'))
);
CREATE INDEX refunds_by_order ON refunds (order_id, amount_minor);

-- What we asked the payment provider: the charge of a confirmation, or a refund.
CREATE TABLE new_payments (
    payment_id TEXT PRIMARY KEY NOT NULL,
    confirmation_id TEXT UNIQUE REFERENCES confirmations,
    refund_id TEXT UNIQUE REFERENCES refunds,
    provider_key TEXT NOT NULL UNIQUE,
    -- The bytes sent, the same on every attempt.
    request TEXT NOT NULL,
    amount_minor BIGINT NOT NULL CHECK (amount_minor > 0),
    currency TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('requested', 'succeeded', 'declined')),
    decline_reason TEXT,
    -- Until when the provider knows its key: after that, sending it again could charge again.
    provider_key_expires_at TIMESTAMP NOT NULL,
    -- Who is asking the provider right now.
    lease_owner TEXT,
    lease_until TIMESTAMP,
    attempts BIGINT NOT NULL,
    -- When the recovery worker looks at it next; a caller who asks needn't wait for that.
    recover_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP NOT NULL,
    decided_at TIMESTAMP,
    CHECK ((confirmation_id IS NULL) <> (refund_id IS NULL))
);
INSERT INTO new_payments
SELECT
    payment_id, confirmation_id, NULL, provider_key, request, amount_minor, currency, status, decline_reason,
    provider_key_expires_at, lease_owner, lease_until, attempts, recover_at, created_at, decided_at
FROM payments;
DROP TABLE payments;
ALTER TABLE new_payments RENAME TO payments;
CREATE INDEX payments_to_recover ON payments (recover_at) WHERE status = 'requested';
