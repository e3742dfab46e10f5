#include "daemon/service/members/request_members.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace spark {
namespace {

bool is_text(const json::value& value) {
  return value.is_string();
}
bool is_truth(const json::value& value) {
  return value.is_bool();
}
bool is_whole(const json::value& value) {
  boost::system::error_code error;
  (void)value.to_number<std::int64_t>(error);
  return !error;
}
bool is_list(const json::value& value) {
  return value.is_array();
}
bool are_texts(const json::value& value) {
  return value.is_array() && std::ranges::all_of(value.get_array(), is_text);
}
bool is_object(const json::value& value) {
  return value.is_object();
}
bool is_truth_or_texts(const json::value& value) {
  return is_truth(value) || are_texts(value);
}
// The code that reads it checks it.
bool is_any(const json::value& /*value*/) {
  return true;
}

struct Member {
  std::string_view name;
  bool (*fits)(const json::value&);
  std::string_view wanted = "true or false";
};

constexpr std::string_view kText = "a text", kNumber = "a whole number", kNames = "a list of names";

// docs/openapi.yaml describes each.
constexpr Member kMembers[] = {{"accept_source", is_truth},
                               {"allow_dirty", is_truth},
                               {"attempt", is_text, kText},
                               {"by", is_text, kText},
                               {"checkpoint", is_text, kText},
                               {"datasets", are_texts, kNames},
                               {"delete_copies", is_truth},
                               {"destination", is_text, kText},
                               {"discard", is_truth},
                               {"file", is_text, kText},
                               {"final", is_truth},
                               {"force", is_truth},
                               {"forget", is_truth},
                               {"generation", is_any},
                               {"hold", is_any},
                               {"if_here", is_truth},
                               {"job", is_object, "an object"},
                               {"keep", is_any},
                               {"lease_s", is_whole, kNumber},
                               {"max_rate", is_whole, kNumber},
                               {"nodes", is_any},
                               {"now", is_truth_or_texts, "true, false or a list of names"},
                               {"offline", is_truth},
                               {"path", is_text, kText},
                               {"prefetch", is_truth},
                               {"sha256", is_truth},
                               {"source", is_text, kText},
                               {"then_write", is_truth},
                               {"wait_s", is_any},
                               {"written", is_text, kText},
                               {"yaml", is_text, kText}};
constexpr Member kJobMembers[] = {{"system", is_text, kText},
                                  {"id", is_text, kText},
                                  {"user", is_text, kText},
                                  {"nodes", is_text, kText},
                                  {"processes", is_list, "a list of numbers"}};

Result<> check(const json::object& object, std::span<const Member> members, const std::string& prefix) {
  constexpr std::size_t kLongestName = 64;
  for (const auto& one : object) {
    const std::string_view name(one.key().data(), one.key().size());
    const auto known = std::ranges::find(members, name, &Member::name);
    if (known == members.end()) {
      std::vector<std::string> names;
      for (const Member& member : members) names.emplace_back(member.name);
      const std::string near = nearest(name, names);
      return fail(Errc::Invalid, "no request has " + prefix + cut_short(printable(name), kLongestName),
                  near.empty() ? "docs/api.md has the form of each request" : "did you mean " + near + "?");
    }
    if (!one.value().is_null() && !known->fits(one.value()))
      return fail(Errc::Invalid, prefix + std::string(name) + " is not " + std::string(known->wanted),
                  "docs/api.md has the form of each request");
  }
  return {};
}

}  // namespace

Result<> check_members(const json::object& body) {
  if (auto fits = check(body, kMembers, ""); !fits) return fits;
  const json::object* job = get_object(body, "job");
  return job == nullptr ? Result<>() : check(*job, kJobMembers, "job.");
}

void drop_nulls(json::object& body) {
  std::vector<std::string> names;
  for (const auto& one : body) {
    if (one.value().is_null() && one.key() != "wait_s")
      names.emplace_back(one.key().data(), one.key().size());
  }
  for (const std::string& name : names) body.erase(name);
}

}  // namespace spark
