-- Column types come from the set that SQLite and PostgreSQL share: TEXT, BIGINT, BOOLEAN, TIMESTAMP.
-- Times are UTC with milliseconds. Amounts are minor units. Ids sort by time.

-- Whose orders they are.
CREATE TABLE accounts (
    account_id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL UNIQUE,
    created_at TIMESTAMP NOT NULL
);

-- Who may call. Only the SHA-256 of a bearer key is kept. Demo actors are refused unless the server runs the demo.
CREATE TABLE actors (
    actor_id TEXT PRIMARY KEY NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts,
    name TEXT NOT NULL,
    key_sha256 TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    demo BOOLEAN NOT NULL,
    created_at TIMESTAMP NOT NULL,
    disabled_at TIMESTAMP
);

-- What is sold. `stock` counts unsold units, those held by confirmations included.
CREATE TABLE products (
    product_id TEXT PRIMARY KEY NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    category TEXT NOT NULL,
    price_minor BIGINT NOT NULL CHECK (price_minor >= 0),
    currency TEXT NOT NULL,
    tax_class TEXT NOT NULL,
    stock BIGINT NOT NULL CHECK (stock >= 0),
    held BIGINT NOT NULL CHECK (held >= 0 AND held <= stock),
    version BIGINT NOT NULL CHECK (version >= 1),
    updated_at TIMESTAMP NOT NULL
);

-- One shipping option in one currency; `countries` is a list of ISO 3166-1 codes with spaces between.
CREATE TABLE shipping_options (
    option_id TEXT NOT NULL,
    currency TEXT NOT NULL,
    price_minor BIGINT NOT NULL CHECK (price_minor >= 0),
    countries TEXT NOT NULL,
    min_business_days BIGINT NOT NULL CHECK (min_business_days >= 0),
    max_business_days BIGINT NOT NULL CHECK (max_business_days >= min_business_days),
    PRIMARY KEY (option_id, currency)
);

-- Sales tax by country or one of its regions, in parts per million.
CREATE TABLE tax_rates (
    tax_rate_id TEXT PRIMARY KEY NOT NULL,
    country TEXT NOT NULL,
    region TEXT,
    tax_class TEXT NOT NULL,
    parts_per_million BIGINT NOT NULL CHECK (parts_per_million >= 0)
);
CREATE INDEX tax_rates_by_country ON tax_rates (country);

-- Discount codes. `held` uses belong to live confirmations, `used` ones to orders.
CREATE TABLE discounts (
    code TEXT PRIMARY KEY NOT NULL,
    parts_per_million BIGINT CHECK (parts_per_million BETWEEN 0 AND 1000000),
    amount_minor BIGINT CHECK (amount_minor >= 0),
    minimum_minor BIGINT CHECK (minimum_minor >= 0),
    currency TEXT,
    expires_at TIMESTAMP,
    use_limit BIGINT CHECK (use_limit >= 0),
    held BIGINT NOT NULL CHECK (held >= 0),
    used BIGINT NOT NULL CHECK (used >= 0),
    CHECK (use_limit IS NULL OR held + used <= use_limit),
    CHECK ((parts_per_million IS NULL) <> (amount_minor IS NULL)),
    CHECK (currency IS NOT NULL OR (amount_minor IS NULL AND minimum_minor IS NULL))
);

-- "This actor's key is taken by this fingerprint." A claim that is there was committed together with its effect.
CREATE TABLE claims (
    actor_id TEXT NOT NULL REFERENCES actors,
    idempotency_key TEXT NOT NULL,
    operation TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    fingerprint_version BIGINT NOT NULL,
    task_id TEXT,
    -- The path of what the call made, if anything.
    resource TEXT,
    created_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    -- The stored answer. Null where the answer is kept elsewhere (a confirm's stands on its confirmation).
    answer_status BIGINT,
    answer_body TEXT,
    answer_location TEXT,
    PRIMARY KEY (actor_id, idempotency_key)
);

-- A firm, single-use offer to run one operation with one plan, for one actor, until it expires.
CREATE TABLE confirmations (
    confirmation_id TEXT PRIMARY KEY NOT NULL,
    actor_id TEXT NOT NULL REFERENCES actors,
    account_id TEXT NOT NULL REFERENCES accounts,
    -- What it is an offer to do.
    purpose TEXT NOT NULL CHECK (purpose IN ('checkout', 'refund')),
    status TEXT NOT NULL
        CHECK (status IN ('pending', 'committing', 'confirmed', 'declined', 'cancelled', 'expired')),
    plan TEXT NOT NULL,
    plan_digest TEXT NOT NULL,
    attempt_digest TEXT NOT NULL,
    warnings TEXT NOT NULL,
    task_id TEXT,
    created_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    order_id TEXT,
    -- What confirming it answered, once decided; kept as long as the order exists.
    answer_status BIGINT,
    answer_body TEXT,
    CHECK ((answer_status IS NOT NULL) = (status IN ('confirmed', 'declined'))),
    CHECK ((order_id IS NOT NULL) = (status = 'confirmed'))
);
-- No way round an unknown outcome: an actor has one undecided attempt at the same purchase.
CREATE UNIQUE INDEX one_undecided_attempt ON confirmations (actor_id, attempt_digest) WHERE status = 'committing';
CREATE INDEX confirmations_by_deadline ON confirmations (status, expires_at);
CREATE INDEX confirmations_by_actor ON confirmations (actor_id, status, expires_at);

-- Units that a pending or committing confirmation keeps from others. Deleted when they are freed or sold.
CREATE TABLE stock_holds (
    confirmation_id TEXT NOT NULL REFERENCES confirmations,
    product_id TEXT NOT NULL REFERENCES products,
    quantity BIGINT NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (confirmation_id, product_id)
);
CREATE INDEX stock_holds_by_product ON stock_holds (product_id);

-- Discount uses that a pending or committing confirmation keeps from others.
CREATE TABLE discount_holds (
    confirmation_id TEXT NOT NULL REFERENCES confirmations,
    code TEXT NOT NULL REFERENCES discounts,
    PRIMARY KEY (confirmation_id, code)
);
CREATE INDEX discount_holds_by_code ON discount_holds (code);

-- What we asked the payment provider, and what is known of it. 'requested' until the provider's word is known.
CREATE TABLE payments (
    payment_id TEXT PRIMARY KEY NOT NULL,
    confirmation_id TEXT NOT NULL UNIQUE REFERENCES confirmations,
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
    decided_at TIMESTAMP
);
CREATE INDEX payments_to_recover ON payments (recover_at) WHERE status = 'requested';

-- What confirmed plans became. One order a confirmation, for ever.
CREATE TABLE orders (
    order_id TEXT PRIMARY KEY NOT NULL,
    confirmation_id TEXT NOT NULL UNIQUE REFERENCES confirmations,
    actor_id TEXT NOT NULL REFERENCES actors,
    account_id TEXT NOT NULL REFERENCES accounts,
    attempt_digest TEXT NOT NULL,
    plan TEXT NOT NULL,
    total_minor BIGINT NOT NULL CHECK (total_minor >= 0),
    refunded_minor BIGINT NOT NULL CHECK (refunded_minor >= 0 AND refunded_minor <= total_minor),
    currency TEXT NOT NULL,
    shipping_address TEXT NOT NULL,
    -- Null when the total was zero.
    payment_id TEXT UNIQUE REFERENCES payments,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX orders_by_attempt ON orders (actor_id, attempt_digest, created_at);
CREATE INDEX orders_by_account ON orders (account_id, order_id);
