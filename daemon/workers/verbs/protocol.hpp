// A worker's side of the pipe: one JSON request on stdin; on stdout any number of {"progress": {…}} lines,
// then exactly one {"result": {…}} or {"error": {…}}. `serve` answers so line by line, {"verb", "request"}
// each, until there is nothing more to read.
#pragma once

#include <functional>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"

namespace spark::workers {

using ProgressLine = std::function<void(const json::object&)>;
using Verb = Result<json::object> (*)(const json::object& request, const ProgressLine& progress);

// Runs one verb to its answer; the exit status is 0 when an answer was written, whatever it says.
int worker_main(const std::string& verb);

}  // namespace spark::workers
