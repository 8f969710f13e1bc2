ALTER TABLE ledger DROP COLUMN refund_of;
