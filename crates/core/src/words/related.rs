//! Words that belong together although their stems differ: forms of irregular verbs, nouns of verbs, and common short
//! forms.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::stem;

/// One group per line. Words with a second meaning that is common in technical texts, such as `left`, are not among them.
const GROUPS: &str = "\
    arise arose arisen\nawake awoke\nbeat beaten\nbecome became\nbegin began begun\nbend bent\nbite bit bitten\nblow blew blown
    break broke broken\nbring brought\nbuild built\nburn burnt\nbuy bought\ncatch caught\nchoose chose chosen choice\ncling clung
    come came\ncreep crept\ndeal dealt\ndig dug\ndraw drew drawn\ndream dreamt\ndrink drank drunk\ndrive drove driven\neat ate eaten
    fall fell fallen\nfeed fed\nfeel felt\nfight fought\nfind found\nflee fled\nfly flew flown\nforbid forbade forbidden
    forget forgot forgotten\nforgive forgave forgiven\nfreeze froze frozen\nget got gotten\ngive gave given\ngo went gone
    grow grew grown\nhang hung\nhear heard\nhide hid hidden\nhold held\nkeep kept\nknow knew known\nlead led\nlearn learnt\nlend lent
    lose lost loss\nmake made\nmean meant\nmeet met\noverride overrode overridden\npay paid payment\nride rode ridden\nring rang rung
    rise risen\nrun ran\nsay said\nsee seen\nseek sought\nsell sold\nsend sent\nshake shook shaken\nshine shone\nshoot shot
    show shown\nshrink shrank shrunk\nsing sang sung\nsink sank sunk\nsit sat\nsleep slept\nspeak spoke spoken\nspend spent\nspin spun
    stand stood\nsteal stole stolen\nstick stuck\nstrike struck\nswear swore sworn\nsweep swept\nswim swam swum\nswing swung
    take took taken\nteach taught\ntear tore torn\ntell told\nthink thought\nthrow threw thrown\nunderstand understood
    undo undid undone\nwake woke woken\nwear wore worn\nwin won\nwithdraw withdrew withdrawn\nwrite wrote written
    rewrite rewrote rewritten\nrebuild rebuilt\novercome overcame\nchild children\nman men\nwoman women\nperson people\nfoot feet
    tooth teeth\nmouse mice\nwife wives\nmatrix matrices\ncriterion criteria
    analyze analyse analysis analyses\napply application\ndecide decision\ndescribe description\nexplain explanation
    fail failure\nmaintain maintenance\npermit permission\nreceive reception receipt\nstore storage\nsucceed success\nuse usage
    auth authenticate authentication\nconfig configuration configure\ndb database\ndeps dependency\ndir directory
    doc documentation\nenv environment\nerr error\nmsg message\nparam parameter\nperf performance\npostgres postgresql
    prod production\nrepo repository\njs javascript\nk8s kubernetes\nts typescript";

static BY_STEM: LazyLock<HashMap<String, Vec<&'static str>>> = LazyLock::new(|| {
    let mut groups = HashMap::new();
    for line in GROUPS.lines() {
        for member in line.split_whitespace().map(stem) {
            let others = line.split_whitespace().filter(|other| stem(other) != member);
            groups.insert(member.clone(), others.collect());
        }
    }
    groups
});

/// Returns the words that belong to a word with this stem, without those of the same stem.
pub fn related(stem: &str) -> &'static [&'static str] {
    BY_STEM.get(stem).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEM-7, SES-14: a question finds irregular forms, nouns of verbs and short forms, and other words stay alone.
    #[test]
    fn words_of_one_meaning_belong_together() {
        let of = |word: &str| related(&stem(word)).to_vec();
        assert_eq!(of("buy"), ["bought"]);
        assert_eq!(of("chosen"), ["choose", "choice"]);
        assert_eq!(of("decisions"), ["decide"]);
        assert_eq!(of("configurations"), ["config"]);
        assert!(of("left").is_empty() && of("parser").is_empty());
    }

    #[test]
    fn no_word_is_in_two_groups() {
        let mut seen = HashMap::new();
        for (number, line) in GROUPS.lines().enumerate() {
            for word in line.split_whitespace() {
                let other = seen.insert(stem(word), number).unwrap_or(number);
                assert_eq!(other, number, "{word} is in two groups");
            }
        }
    }
}
