-- What stands in migrations/sqlite, for PostgreSQL. Column types come from the set that both share: TEXT, BIGINT, BOOLEAN,
-- TIMESTAMP. Times are UTC with milliseconds. Amounts are minor units. Ids sort by time; what is ordered or compared as a
-- range has the collation "C", so that it sorts as bytes, as it does everywhere else.

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
    product_id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
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

-- A firm, single-use offer to run one operation, for one actor, until it expires. It ends in an order, or has a refund from
-- when it is confirmed on.
CREATE TABLE confirmations (
    confirmation_id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
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
    order_id TEXT COLLATE "C",
    refund_id TEXT COLLATE "C",
    -- What confirming it answered, once decided; kept as long as the order exists.
    answer_status BIGINT,
    answer_body TEXT,
    CHECK ((answer_status IS NOT NULL) = (status IN ('confirmed', 'declined'))),
    CHECK ((order_id IS NOT NULL) = (status = 'confirmed' AND purpose = 'checkout')),
    CHECK (refund_id IS NULL OR purpose = 'refund')
);
CREATE UNIQUE INDEX one_undecided_attempt ON confirmations (actor_id, attempt_digest) WHERE status = 'committing';
CREATE INDEX confirmations_by_deadline ON confirmations (status, expires_at);
CREATE INDEX confirmations_by_actor ON confirmations (actor_id, status, expires_at);
CREATE INDEX confirmations_of_actor ON confirmations (actor_id, confirmation_id);
CREATE INDEX refund_confirmations_of_account ON confirmations (account_id, confirmation_id) WHERE purpose = 'refund';

-- Units that a pending or committing confirmation keeps from others. Deleted when they are freed or sold.
CREATE TABLE stock_holds (
    confirmation_id TEXT COLLATE "C" NOT NULL REFERENCES confirmations,
    product_id TEXT COLLATE "C" NOT NULL REFERENCES products,
    quantity BIGINT NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (confirmation_id, product_id)
);
CREATE INDEX stock_holds_by_product ON stock_holds (product_id);

-- Discount uses that a pending or committing confirmation keeps from others.
CREATE TABLE discount_holds (
    confirmation_id TEXT COLLATE "C" NOT NULL REFERENCES confirmations,
    code TEXT NOT NULL REFERENCES discounts,
    PRIMARY KEY (confirmation_id, code)
);
CREATE INDEX discount_holds_by_code ON discount_holds (code);

-- What confirmed plans became. One order a confirmation, for ever.
CREATE TABLE orders (
    order_id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    confirmation_id TEXT COLLATE "C" NOT NULL UNIQUE REFERENCES confirmations,
    actor_id TEXT NOT NULL REFERENCES actors,
    account_id TEXT NOT NULL REFERENCES accounts,
    attempt_digest TEXT NOT NULL,
    plan TEXT NOT NULL,
    total_minor BIGINT NOT NULL CHECK (total_minor >= 0),
    refunded_minor BIGINT NOT NULL CHECK (refunded_minor >= 0 AND refunded_minor <= total_minor),
    -- For refunds that are pending or offered.
    reserved_minor BIGINT NOT NULL DEFAULT 0
        CHECK (reserved_minor >= 0 AND refunded_minor + reserved_minor <= total_minor),
    currency TEXT NOT NULL,
    shipping_address TEXT NOT NULL,
    -- Null when the total was zero.
    payment_id TEXT UNIQUE,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX orders_by_attempt ON orders (actor_id, attempt_digest, created_at);
CREATE INDEX orders_by_account ON orders (account_id, order_id);

-- What a pending refund confirmation reserves of an order. Deleted when it is freed or becomes a refund.
CREATE TABLE refund_holds (
    confirmation_id TEXT COLLATE "C" PRIMARY KEY NOT NULL REFERENCES confirmations,
    order_id TEXT COLLATE "C" NOT NULL REFERENCES orders,
    amount_minor BIGINT NOT NULL CHECK (amount_minor > 0)
);
CREATE INDEX refund_holds_by_order ON refund_holds (order_id);

-- Refunds that were sent to the provider. 'pending' until its word is known.
CREATE TABLE refunds (
    refund_id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    order_id TEXT COLLATE "C" NOT NULL REFERENCES orders,
    actor_id TEXT NOT NULL REFERENCES actors,
    -- It was asked for twice; or else its answer stands on the claim of this key of the actor's.
    confirmation_id TEXT COLLATE "C" UNIQUE REFERENCES confirmations,
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
CREATE TABLE payments (
    payment_id TEXT PRIMARY KEY NOT NULL,
    confirmation_id TEXT COLLATE "C" UNIQUE REFERENCES confirmations,
    refund_id TEXT COLLATE "C" UNIQUE REFERENCES refunds,
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
CREATE INDEX payments_to_recover ON payments (recover_at) WHERE status = 'requested';
ALTER TABLE orders ADD FOREIGN KEY (payment_id) REFERENCES payments;

-- Every change of a product's stock by hand. What was set, less what was sold, is the stock, for ever.
CREATE TABLE stock_changes (
    stock_change_id TEXT PRIMARY KEY NOT NULL,
    product_id TEXT COLLATE "C" NOT NULL REFERENCES products,
    stock_before BIGINT NOT NULL CHECK (stock_before >= 0),
    stock_after BIGINT NOT NULL CHECK (stock_after >= 0),
    -- Null: the sample shop.
    actor_id TEXT REFERENCES actors,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX stock_changes_by_product ON stock_changes (product_id);

-- The words of each product's title and description, for searching.
CREATE TABLE product_words (
    product_id TEXT COLLATE "C" NOT NULL REFERENCES products,
    word TEXT COLLATE "C" NOT NULL,
    -- 2 in the title, 1 in the description.
    weight BIGINT NOT NULL CHECK (weight IN (1, 2)),
    PRIMARY KEY (product_id, word)
);
CREATE INDEX product_words_by_word ON product_words (word, product_id, weight);
CREATE INDEX products_by_category ON products (category, product_id);

-- The sweeper's: claims whose answer is still kept.
CREATE INDEX claims_to_forget ON claims (expires_at) WHERE answer_body IS NOT NULL;

-- How often each key of an agent's task was sent, and what came of it. Reports only: nothing is decided by it.
CREATE TABLE task_calls (
    actor_id TEXT NOT NULL REFERENCES actors,
    task_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    -- The key; where none was sent, the id in the path.
    subject TEXT NOT NULL,
    calls BIGINT NOT NULL,
    executed BIGINT NOT NULL,
    replayed BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    last_outcome TEXT NOT NULL,
    last_at TIMESTAMP NOT NULL,
    PRIMARY KEY (actor_id, task_id, operation, subject)
);
CREATE INDEX task_calls_to_forget ON task_calls (last_at);
