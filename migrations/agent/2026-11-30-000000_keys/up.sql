-- What a step of a run is authorised to do now: other parameters are refused until somebody authorises them anew.
CREATE TABLE steps (
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    step TEXT NOT NULL,
    tool TEXT NOT NULL,
    parameters TEXT NOT NULL,
    attempt BIGINT NOT NULL CHECK (attempt > 0),
    PRIMARY KEY (tenant, run, step)
);

-- One key an identity, made before the first byte is sent, and what became of it once that is final.
CREATE TABLE keys (
    idempotency_key TEXT PRIMARY KEY NOT NULL,
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    step TEXT NOT NULL,
    tool TEXT NOT NULL,
    parameters TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    sent_at TIMESTAMP,
    answer_status BIGINT,
    answer_body TEXT,
    UNIQUE (tenant, run, step, tool, parameters, attempt)
);

-- Calls of services that know no keys. Started and not done is for a person to look at.
CREATE TABLE marks (
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    step TEXT NOT NULL,
    tool TEXT NOT NULL,
    parameters TEXT NOT NULL,
    started_at TIMESTAMP NOT NULL,
    result TEXT,
    PRIMARY KEY (tenant, run, step)
);
