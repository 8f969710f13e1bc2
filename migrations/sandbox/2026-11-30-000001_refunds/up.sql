-- The charge that a refund gives back; null for a charge.
ALTER TABLE ledger ADD COLUMN refund_of TEXT REFERENCES ledger;
