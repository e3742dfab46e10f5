#include "tests/histories/copies/worker/verb_table.hpp"

#include <array>
#include <string_view>

#include "base/threads.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "staging/copy/copy.hpp"

namespace spark::histories::copies {
namespace {

// {"from", "to", "verify"} → {"unchanged", "files"}
Result<json::object> copy_verb(const json::object& request, const workers::ProgressLine& /*progress*/) {
  staging::CopyOptions options;
  options.threads = 1;
  options.verify = get_bool(request, "verify").value_or(false);
  const staging::ProgressSink quiet = [](const staging::CopyProgress&) {};
  const StopFlag never{false};
  const auto copied = staging::copy(get_string(request, "from").value_or(""),
                                    get_string(request, "to").value_or(""), options, quiet, never);
  if (!copied) return copied.take_error();
  json::array warnings;
  for (const std::string& warning : copied->warnings) warnings.emplace_back(warning);
  return json::object{
      {"unchanged", copied->unchanged}, {"files", copied->files}, {"warnings", std::move(warnings)}};
}

struct NamedVerb {
  std::string_view name;
  workers::Verb verb;
};

constexpr std::array kVerbTable = {
    NamedVerb{"stage", workers::stage_verb},         NamedVerb{"verify", workers::verify_verb},
    NamedVerb{"evict", workers::evict_verb},         NamedVerb{"recover", workers::recover_verb},
    NamedVerb{"catalog", workers::catalog_verb},     NamedVerb{"lease", workers::lease_verb},
    NamedVerb{"jobs-here", workers::jobs_here_verb}, NamedVerb{"copy", copy_verb},
};

}  // namespace

workers::Verb verb_called(const std::string& name) {
  for (const NamedVerb& row : kVerbTable) {
    if (row.name == name) return row.verb;
  }
  return nullptr;
}

}  // namespace spark::histories::copies
