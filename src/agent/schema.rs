//! The tables of the agent's own file.

diesel::table! {
    steps (tenant, run, step) {
        tenant -> Text,
        run -> Text,
        step -> Text,
        tool -> Text,
        parameters -> Text,
        attempt -> BigInt,
    }
}

diesel::table! {
    keys (idempotency_key) {
        idempotency_key -> Text,
        tenant -> Text,
        run -> Text,
        step -> Text,
        tool -> Text,
        parameters -> Text,
        attempt -> BigInt,
        created_at -> Timestamp,
        sent_at -> Nullable<Timestamp>,
        answer_status -> Nullable<BigInt>,
        answer_body -> Nullable<Text>,
    }
}

diesel::table! {
    marks (tenant, run, step) {
        tenant -> Text,
        run -> Text,
        step -> Text,
        tool -> Text,
        parameters -> Text,
        started_at -> Timestamp,
        result -> Nullable<Text>,
    }
}
