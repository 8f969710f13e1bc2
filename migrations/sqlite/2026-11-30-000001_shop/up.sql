-- Every change of a product's stock by hand. What was set, less what was sold, is the stock, for ever.
CREATE TABLE stock_changes (
    stock_change_id TEXT PRIMARY KEY NOT NULL,
    product_id TEXT NOT NULL REFERENCES products,
    stock_before BIGINT NOT NULL CHECK (stock_before >= 0),
    stock_after BIGINT NOT NULL CHECK (stock_after >= 0),
    -- Null: the sample shop, or a product that is older than this table.
    actor_id TEXT REFERENCES actors,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX stock_changes_by_product ON stock_changes (product_id);

-- Products that are older than this table start with what they have and what was sold of them.
INSERT INTO stock_changes (stock_change_id, product_id, stock_before, stock_after, actor_id, created_at)
SELECT
    'stc_' || lower(hex(randomblob(16))),
    product_id,
    0,
    stock + coalesce(
        (
            SELECT sum(json_extract(line.value, '$.quantity'))
            FROM orders, json_each(orders.plan, '$.lines') AS line
            WHERE json_extract(line.value, '$.product_id') = products.product_id
        ),
        0
    ),
    NULL,
    updated_at
FROM products;

-- The words of each product's title and description, for searching.
CREATE TABLE product_words (
    product_id TEXT NOT NULL REFERENCES products,
    word TEXT NOT NULL,
    -- 2 in the title, 1 in the description.
    weight BIGINT NOT NULL CHECK (weight IN (1, 2)),
    PRIMARY KEY (product_id, word)
);
CREATE INDEX product_words_by_word ON product_words (word, product_id, weight);
CREATE INDEX products_by_category ON products (category, product_id);

-- Lists, newest first.
CREATE INDEX confirmations_of_actor ON confirmations (actor_id, confirmation_id);

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
