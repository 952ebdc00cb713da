// A browser for the authorization servers of the conformance suite, which redirect without a person.
await fetch(process.argv.at(-1), { redirect: "follow" });
