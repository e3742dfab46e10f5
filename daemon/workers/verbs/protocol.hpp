// A worker's side of the pipe: one JSON request on stdin; on stdout any number of {"progress": {…}} lines,
// then exactly one {"result": {…}} or {"error": {…}}. `serve` answers this way line by line, for {"verb",
// "request"} each, until the end of stdin.
#pragma once

#include <functional>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"

namespace spark::workers {

using ProgressLine = std::function<void(const json::object&)>;
using VerbFunction = Result<json::object>(const json::object& request, const ProgressLine& progress);
using Verb = VerbFunction*;

// {} once it is done.
inline Result<json::object> empty_answer(Result<> done) {
  if (!done) return done.take_error();
  return json::object{};
}

// For a verb some of whose threads hang in the kernel, which nothing may wait for.
[[noreturn]] void end_with(const Result<json::object>& answer);

// Runs one verb; the exit status is 0 if an answer was written, even if it is an error.
int worker_main(const std::string& verb);

}  // namespace spark::workers
