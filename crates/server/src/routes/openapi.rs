//! SRV-1: the OpenAPI document, made from the table of routes and the types of the answers.

use axum::Json;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{Route, all};
use crate::checks::Needs;
use crate::problem::Problem;

pub(crate) async fn openapi() -> Json<Value> {
    Json(document())
}

/// Returns the OpenAPI document.
pub(crate) fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<Problem>();
    let mut paths: Map<String, Value> = Map::new();
    for route in all() {
        let method = route.method.as_str().to_lowercase();
        let body = route.body.map(|schema| schema(&mut generator));
        let answer = route.answer.map(|schema| schema(&mut generator));
        let mut operation = json!({
            "summary": route.help,
            "operationId": operation_id(&route),
            "parameters": parameters(&route),
            "responses": {
                "default": {
                    "description": "Refused or failed",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
        });
        let kind = route.kind();
        operation["responses"][route.status] = match answer {
            Some(schema) => json!({ "description": "Success", "content": { kind: { "schema": schema } } }),
            None if route.status == "204" => json!({ "description": "Success" }),
            None => json!({ "description": "Success", "content": { kind: {} } }),
        };
        if let Some(schema) = body {
            operation["requestBody"] = json!({
                "required": true,
                "content": { "application/json": { "schema": schema } },
            });
        }
        if let Needs::Scope(scope) = route.needs {
            operation["security"] = json!([{ "token": [scope.name()] }, { "cookie": [scope.name()] }]);
        }
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[method] = operation;
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Windlass",
            "version": "1",
            "description": "Sessions over HTTP. Requests that change something have the content type application/json; \
                browsers also send `X-Windlass: 1`. Errors are problems (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "windlass-4747" },
            },
        },
    })
}

fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '{', '}', '.']).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.filter(|word| *word != "api").collect();
    format!("{}_{}", route.method.as_str().to_lowercase(), words.join("_"))
}

fn parameters(route: &Route) -> Vec<Value> {
    let path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let path = path.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let query = route.query.iter().map(|(name, help)| {
        json!({ "name": name, "in": "query", "description": help, "schema": { "type": "string" } })
    });
    path.chain(query).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SRV-1: the document is the one in `docs/openapi.json`, and has every route. `UPDATE_DOCS=1` writes it.
    #[test]
    fn the_document_is_published() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let text = format!("{:#}\n", document());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let published = std::fs::read_to_string(path).unwrap();
        assert!(published == text, "docs/openapi.json differs: run with UPDATE_DOCS=1");
        let document = document();
        let routes = all();
        for route in &routes {
            let method = route.method.as_str().to_lowercase();
            let operation = &document["paths"][route.path][&method];
            assert!(operation["operationId"].is_string(), "{method} {}", route.path);
        }
        let count = |value: &Value| value.as_object().map_or(0, Map::len);
        let documented: usize = document["paths"].as_object().unwrap().values().map(count).sum();
        assert_eq!(documented, routes.len(), "a route is documented twice");
    }

    /// SRV-1: every reference in the document leads to a schema.
    #[test]
    fn references_lead_somewhere() {
        fn check(value: &Value, document: &Value) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(to)) = map.get("$ref") {
                        let pointer = to.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{to}");
                    }
                    map.values().for_each(|value| check(value, document));
                }
                Value::Array(values) => values.iter().for_each(|value| check(value, document)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document);
    }
}
