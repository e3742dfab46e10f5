// Error messages for a command line.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): its own name
class App;
class ParseError;
}  // namespace CLI

namespace spark::cli {

// Of the program's parser, once it has refused a command line: "there is no verb 'statsu' - did you mean
// 'status'?". Errc::Invalid.
Error explain(const CLI::App& root, const CLI::ParseError& error);

// "there is no verb 'statsu'", among those below `parser`.
Error no_such_verb(const CLI::App& parser, const std::string& word);

// `run` with these words behind it and no `--`: with a guess where it belongs.
Error without_dashes(const std::vector<std::string>& words);

}  // namespace spark::cli
