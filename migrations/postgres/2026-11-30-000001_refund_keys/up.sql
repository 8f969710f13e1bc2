-- One refund a key, for ever: also if the key's claim were lost.
CREATE UNIQUE INDEX one_refund_per_key ON refunds (actor_id, idempotency_key);
