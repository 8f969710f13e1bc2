-- What the sandbox provider did. One row a key, for ever: this is what a real provider's books would say.
CREATE TABLE ledger (
    provider_key TEXT PRIMARY KEY NOT NULL,
    request TEXT NOT NULL,
    -- The charge that a refund gives back, as it was named; null for a charge.
    refund_of TEXT,
    amount_minor BIGINT NOT NULL CHECK (amount_minor > 0),
    currency TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('succeeded', 'declined')),
    decline_reason TEXT,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX ledger_by_charge ON ledger (refund_of);

-- How often each key was sent to it, whatever came of it.
CREATE TABLE attempts (
    provider_key TEXT PRIMARY KEY NOT NULL,
    count BIGINT NOT NULL
);

-- Requests that are still on their way: they land after the first look-up that didn't see them.
CREATE TABLE under_way (
    provider_key TEXT PRIMARY KEY NOT NULL,
    request TEXT NOT NULL
);
