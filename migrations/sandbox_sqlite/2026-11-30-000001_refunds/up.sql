-- The charge that a refund gives back, as it was named; null for a charge.
ALTER TABLE ledger ADD COLUMN refund_of TEXT;
