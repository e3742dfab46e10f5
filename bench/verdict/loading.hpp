// The answer to another question of a record: how long does a model take to be loaded, from where, in which
// way, and how much memory is left?
#pragma once

#include "bench/verdict/verdict.hpp"

namespace spark::bench {

// Asked for, or no other question is and the record has nothing else.
bool asks_about_loading(const Record& record);

// With `loading`, unless no rate allows an answer.
Verdict loading_verdict(const Record& record);

// The answer first; cautions and notes are the verdict's.
std::vector<std::string> loading_sentences(const Verdict& verdict);

}  // namespace spark::bench
