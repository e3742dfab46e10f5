// The manual page of spark-stage, made from the help of its verbs.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): its own name
class App;
}  // namespace CLI

namespace spark::cli {

// A page in roff (man(7)): `page` with its lines `.\" @OPTIONS@` and `.\" @VERBS@` replaced by the program's
// options and by a section for each verb that is in the help; @VERSION@ by the program's version.
std::string fill_manual(const CLI::App& root, std::string page);

}  // namespace spark::cli
