// What is known of a copy of a model, as text.
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "staging/manifest/names.hpp"
#include "staging/models/model.hpp"

namespace spark::staging {
namespace {

constexpr std::int64_t kFormat = 1;
// From the weakest to the strongest.
constexpr std::array<std::pair<ModelCheck, std::string_view>, 4> kChecks = {
    {{ModelCheck::None, "none"},
     {ModelCheck::Structure, "structure"},
     {ModelCheck::Published, "published"},
     {ModelCheck::Complete, "complete"}}};

std::ptrdiff_t strength(ModelCheck check) {
  return std::ranges::find(kChecks, check, &std::pair<ModelCheck, std::string_view>::first) - kChecks.begin();
}

json::object to_object(const ModelRecord& record) {
  return {{"format", kFormat},
          {"name", encode_name(record.name)},
          {"revision", record.revision},
          {"entry_point", encode_name(record.entry_point)},
          {"hub_folder", encode_name(record.hub_folder)},
          {"check", to_string(record.check)},
          {"expect", record.expect},
          {"pin", record.pin},
          {"sha256", record.sha256},
          {"git_sha1", record.git_sha1},
          {"none", record.none},
          {"absent", record.absent}};
}

std::string name_in(const json::object& object, std::string_view key) {
  return decode_name(get_text(object, key)).value_or("");
}

}  // namespace

std::string_view to_string(ModelCheck check) {
  return kChecks[static_cast<std::size_t>(strength(check))].second;
}

ModelCheck model_check_of(std::string_view word) {
  for (const auto& [known, its_word] : kChecks)
    if (word == its_word) return known;
  return ModelCheck::Published;
}

bool ModelRecord::satisfies(const ModelOptions& wanted) const {
  return name == wanted.name && strength(check) >= strength(wanted.check) &&
         (wanted.expect.empty() || wanted.expect == expect || wanted.expect == pin);
}

std::string summary_text(const ModelRecord& record) {
  return json::serialize(to_object(record));
}

std::string to_text(const ModelRecord& record) {
  json::object object = to_object(record);
  json::array& digests = object["digests"].emplace_array();
  for (const PublishedFile& file : record.digests) {
    digests.push_back(json::object{
        {"path", encode_name(file.path)}, {"hex", file.hex}, {"told_by", encode_name(file.told_by)}});
  }
  return json::serialize(object);
}

std::optional<ModelRecord> parse_model_record(std::string_view text) {
  const auto object = text.empty() ? Result<json::object>(json::object()) : parse_json_object(text);
  if (!object || get_int(*object, "format") != kFormat) return std::nullopt;
  ModelRecord record;
  record.name = name_in(*object, "name");
  record.revision = get_text(*object, "revision");
  record.entry_point = name_in(*object, "entry_point");
  record.hub_folder = name_in(*object, "hub_folder");
  if (!is_safe_path(record.entry_point) || !is_safe_path(record.hub_folder)) return std::nullopt;
  record.check = model_check_of(get_text(*object, "check"));
  record.expect = get_text(*object, "expect");
  record.pin = get_text(*object, "pin");
  record.sha256 = get_count(*object, "sha256");
  record.git_sha1 = get_count(*object, "git_sha1");
  record.none = get_count(*object, "none");
  record.absent = get_count(*object, "absent");
  for (const json::object& file : objects_in(*object, "digests"))
    record.digests.push_back({name_in(file, "path"), 0, get_text(file, "hex"), name_in(file, "told_by")});
  return record;
}

}  // namespace spark::staging
