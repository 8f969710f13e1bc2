//! The tables, as the migrations make them. What each is for stands there.

diesel::table! {
    accounts (account_id) { account_id -> Text, name -> Text, created_at -> Timestamp, }
}

diesel::table! {
    actors (actor_id) {
        actor_id -> Text,
        account_id -> Text,
        name -> Text,
        key_sha256 -> Text,
        scopes -> Text,
        demo -> Bool,
        created_at -> Timestamp,
        disabled_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    products (product_id) {
        product_id -> Text,
        title -> Text,
        description -> Text,
        category -> Text,
        price_minor -> BigInt,
        currency -> Text,
        tax_class -> Text,
        stock -> BigInt,
        held -> BigInt,
        version -> BigInt,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    shipping_options (option_id, currency) {
        option_id -> Text,
        currency -> Text,
        price_minor -> BigInt,
        countries -> Text,
        min_business_days -> BigInt,
        max_business_days -> BigInt,
    }
}

diesel::table! {
    tax_rates (tax_rate_id) {
        tax_rate_id -> Text,
        country -> Text,
        region -> Nullable<Text>,
        tax_class -> Text,
        parts_per_million -> BigInt,
    }
}

diesel::table! {
    discounts (code) {
        code -> Text,
        parts_per_million -> Nullable<BigInt>,
        amount_minor -> Nullable<BigInt>,
        minimum_minor -> Nullable<BigInt>,
        currency -> Nullable<Text>,
        expires_at -> Nullable<Timestamp>,
        use_limit -> Nullable<BigInt>,
        held -> BigInt,
        used -> BigInt,
    }
}

diesel::table! {
    claims (actor_id, idempotency_key) {
        actor_id -> Text,
        idempotency_key -> Text,
        operation -> Text,
        fingerprint -> Text,
        fingerprint_version -> BigInt,
        task_id -> Nullable<Text>,
        resource -> Nullable<Text>,
        created_at -> Timestamp,
        expires_at -> Timestamp,
        answer_status -> Nullable<BigInt>,
        answer_body -> Nullable<Text>,
        answer_location -> Nullable<Text>,
    }
}

diesel::table! {
    confirmations (confirmation_id) {
        confirmation_id -> Text,
        actor_id -> Text,
        account_id -> Text,
        purpose -> Text,
        status -> Text,
        offer -> Text,
        plan_digest -> Text,
        attempt_digest -> Text,
        warnings -> Text,
        task_id -> Nullable<Text>,
        created_at -> Timestamp,
        expires_at -> Timestamp,
        order_id -> Nullable<Text>,
        refund_id -> Nullable<Text>,
        answer_status -> Nullable<BigInt>,
        answer_body -> Nullable<Text>,
    }
}

diesel::table! {
    stock_holds (confirmation_id, product_id) {
        confirmation_id -> Text,
        product_id -> Text,
        quantity -> BigInt,
    }
}

diesel::table! {
    discount_holds (confirmation_id, code) { confirmation_id -> Text, code -> Text, }
}

diesel::table! {
    payments (payment_id) {
        payment_id -> Text,
        confirmation_id -> Nullable<Text>,
        refund_id -> Nullable<Text>,
        provider_key -> Text,
        request -> Text,
        amount_minor -> BigInt,
        currency -> Text,
        status -> Text,
        decline_reason -> Nullable<Text>,
        provider_key_expires_at -> Timestamp,
        lease_owner -> Nullable<Text>,
        lease_until -> Nullable<Timestamp>,
        attempts -> BigInt,
        recover_at -> Timestamp,
        created_at -> Timestamp,
        decided_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    orders (order_id) {
        order_id -> Text,
        confirmation_id -> Text,
        actor_id -> Text,
        account_id -> Text,
        attempt_digest -> Text,
        plan -> Text,
        total_minor -> BigInt,
        refunded_minor -> BigInt,
        reserved_minor -> BigInt,
        currency -> Text,
        shipping_address -> Text,
        payment_id -> Nullable<Text>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    refund_holds (confirmation_id) { confirmation_id -> Text, order_id -> Text, amount_minor -> BigInt, }
}

diesel::table! {
    refunds (refund_id) {
        refund_id -> Text,
        order_id -> Text,
        actor_id -> Text,
        confirmation_id -> Nullable<Text>,
        idempotency_key -> Nullable<Text>,
        amount_minor -> BigInt,
        currency -> Text,
        reason -> Text,
        note -> Nullable<Text>,
        status -> Text,
        created_at -> Timestamp,
        decided_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    stock_changes (stock_change_id) {
        stock_change_id -> Text,
        product_id -> Text,
        stock_before -> BigInt,
        stock_after -> BigInt,
        actor_id -> Nullable<Text>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    product_words (product_id, word) { product_id -> Text, word -> Text, weight -> BigInt, }
}

diesel::table! {
    task_calls (actor_id, task_id, operation, subject) {
        actor_id -> Text,
        task_id -> Text,
        operation -> Text,
        subject -> Text,
        calls -> BigInt,
        executed -> BigInt,
        replayed -> BigInt,
        refused -> BigInt,
        failed -> BigInt,
        last_outcome -> Text,
        last_at -> Timestamp,
    }
}

diesel::joinable!(actors -> accounts (account_id));
diesel::joinable!(stock_holds -> confirmations (confirmation_id));
diesel::joinable!(orders -> payments (payment_id));
diesel::joinable!(refund_holds -> confirmations (confirmation_id));
diesel::joinable!(discount_holds -> confirmations (confirmation_id));
diesel::allow_tables_to_appear_in_same_query!(accounts, actors);
diesel::allow_tables_to_appear_in_same_query!(confirmations, stock_holds);
diesel::allow_tables_to_appear_in_same_query!(confirmations, products);
diesel::allow_tables_to_appear_in_same_query!(products, stock_holds);
diesel::allow_tables_to_appear_in_same_query!(confirmations, discount_holds);
diesel::allow_tables_to_appear_in_same_query!(confirmations, refund_holds);
diesel::allow_tables_to_appear_in_same_query!(orders, payments);
diesel::allow_tables_to_appear_in_same_query!(claims, refunds);
