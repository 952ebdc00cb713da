//! Made-up process tables, and the members of the tree in them.

use super::*;

const OWN: Own = Own {
    pid: 100,
    session: 50,
};

fn process(pid: i32, parent: i32, group: i32, session: i32) -> Process {
    Process {
        pid,
        parent,
        group,
        session,
        started: 1000 + u64::from(pid.unsigned_abs()),
        dead: false,
    }
}

/// The processes of every case: us, the machine's first process, and the root 200 of the tree.
fn table(rest: &[Process]) -> Vec<Process> {
    let mut table = vec![
        process(1, 0, 1, 1),
        process(50, 1, 50, 50),
        process(100, 50, 100, 50),
    ];
    table.push(process(200, 100, 200, 50));
    table.extend_from_slice(rest);
    table
}

fn found(members: &mut Members, table: &[Process], orphans: bool, evidence: Evidence) -> Vec<i32> {
    let mut pids: Vec<i32> = members
        .find(table, orphans, |_| evidence)
        .iter()
        .map(|process| process.pid)
        .collect();
    pids.sort_unstable();
    pids
}

#[test]
fn members_are_found_however_they_hide() {
    let cases: &[(&str, Process, bool, Evidence, bool)] = &[
        ("a child", process(201, 200, 200, 50), false, Evidence::None, true),
        (
            "in the group, parent gone",
            process(201, 1, 200, 50),
            false,
            Evidence::None,
            true,
        ),
        (
            "own session, parent there",
            process(201, 200, 201, 201),
            false,
            Evidence::None,
            true,
        ),
        (
            "own session, marked",
            process(201, 1, 201, 201),
            false,
            Evidence::Ours,
            true,
        ),
        (
            "adopted, unmarked",
            process(201, 100, 201, 201),
            true,
            Evidence::None,
            true,
        ),
        (
            "adopted, another's",
            process(201, 100, 201, 201),
            true,
            Evidence::OfAnotherCall,
            false,
        ),
        (
            "adopted, may be another's",
            process(201, 100, 201, 201),
            false,
            Evidence::None,
            false,
        ),
        (
            "adopted before",
            process(199, 100, 199, 199),
            true,
            Evidence::None,
            false,
        ),
        (
            "a sibling of the root",
            process(201, 100, 201, 50),
            true,
            Evidence::None,
            false,
        ),
        (
            "a stranger",
            process(201, 1, 201, 201),
            true,
            Evidence::None,
            false,
        ),
    ];
    for (name, candidate, orphans, evidence, expected) in cases {
        let mut members = Members::new(200, OWN);
        // Only the candidate has evidence.
        let pids: Vec<i32> = members
            .find(&table(&[*candidate]), *orphans, |process| {
                if process.pid == candidate.pid {
                    *evidence
                } else {
                    Evidence::None
                }
            })
            .iter()
            .map(|process| process.pid)
            .collect();
        assert_eq!(pids.contains(&candidate.pid), *expected, "{name}");
        assert!(pids.contains(&200), "{name}");
        assert!(
            !pids.contains(&100) && !pids.contains(&50) && !pids.contains(&1),
            "{name}"
        );
    }
}

#[test]
fn a_member_stays_one_when_its_parents_end() {
    let mut members = Members::new(200, OWN);
    let before = table(&[process(201, 200, 201, 201), process(202, 201, 201, 201)]);
    assert_eq!(
        found(&mut members, &before, false, Evidence::None),
        [200, 201, 202]
    );
    let after = [
        process(100, 50, 100, 50),
        process(202, 1, 201, 201),
        process(203, 1, 203, 201),
    ];
    assert_eq!(found(&mut members, &after, false, Evidence::None), [202, 203]);
    // The same number is not the same process.
    let reused = [Process {
        started: 9,
        ..process(202, 1, 202, 202)
    }];
    assert_eq!(found(&mut members, &reused, false, Evidence::None), [0; 0]);
}

#[test]
fn descendants_of_a_marked_process_are_found() {
    let mut members = Members::new(200, OWN);
    let table = table(&[
        process(301, 1, 301, 301),
        process(302, 301, 302, 302),
        process(303, 302, 303, 303),
    ]);
    let pids: Vec<i32> = members
        .find(&table, false, |process| {
            if process.pid == 301 {
                Evidence::Ours
            } else {
                Evidence::None
            }
        })
        .iter()
        .map(|process| process.pid)
        .collect();
    assert_eq!(pids, [200, 301, 302, 303]);
}
