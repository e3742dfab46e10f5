// Reads a record field by field. A missing field, or one of another type, keeps its default, so that a record
// of an interrupted or older run of the same schema is shown as far as possible.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "bench/record/fields.hpp"

namespace spark::bench {
namespace {

std::uint64_t count_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return 0;
  if (value->is_uint64()) return value->get_uint64();
  return value->is_int64() && value->get_int64() > 0 ? static_cast<std::uint64_t>(value->get_int64()) : 0;
}

unsigned small_count_of(const json::object& object, std::string_view key) {
  return static_cast<unsigned>(std::min<std::uint64_t>(count_of(object, key), 1'000'000'000));
}

std::optional<Bytes> optional_bytes(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return count_of(object, key);
}

const json::object& object_in(const json::object& object, std::string_view key) {
  static const json::object empty;
  const json::object* found = get_object(object, key);
  return found == nullptr ? empty : *found;
}

Bins bins_of(const json::object& object) {
  Bins bins;
  for (const auto& [key, value] : object) {
    const auto count = count_of(object, {key.data(), key.size()});
    if (count > 0)
      bins[leading_number<std::uint64_t>({key.data(), key.size()}).value_or(0)] =
          std::min<std::uint64_t>(count, 1ULL << 50);
  }
  return bins;
}

// Each overload reads a field of the expected type; a field of another type keeps its default.
class FieldReader {
 public:
  static constexpr bool kWrites = false;
  explicit FieldReader(const json::object& from) : from_(from) {}

  void operator()(const char* key, std::string& to) const { to = get_shown(from_, key); }
  void operator()(const char* key, std::uint64_t& to) const { to = count_of(from_, key); }
  void operator()(const char* key, unsigned& to) const { to = small_count_of(from_, key); }
  void operator()(const char* key, double& to) const { to = read_amount(from_, key); }
  void operator()(const char* key, bool& to) const { to = get_bool(from_, key).value_or(false); }
  void operator()(const char* key, std::optional<Bytes>& to) const { to = optional_bytes(from_, key); }
  void operator()(const char* key, std::vector<std::string>& to) const { to = get_printable(from_, key); }
  void operator()(const char* key, Bins& to) const { to = bins_of(object_in(from_, key)); }
  void operator()(const char* key, WallTime& to) const {
    to = parse_rfc3339(get_shown(from_, key)).value_or(WallTime{});
  }
  void operator()(const char* key, std::chrono::seconds& to) const {
    to = std::chrono::seconds(small_count_of(from_, key));
  }
  void operator()(const char* key, std::vector<std::pair<std::string, std::string>>& to) const {
    for (const auto& [name, value] : object_in(from_, key)) {
      if (!value.is_string()) continue;
      to.emplace_back(printable({name.data(), name.size()}), printable(std::string_view(value.get_string())));
    }
  }
  template <Listed T>
  void operator()(const char* key, T& to) const {
    visit_fields(to, FieldReader(object_in(from_, key)));
  }
  template <Listed T>
  void operator()(const char* key, std::optional<T>& to) const {
    if (const json::object* found = get_object(from_, key)) visit_fields(to.emplace(), FieldReader(*found));
  }
  template <Listed T>
  void operator()(const char* key, std::vector<T>& to) const {
    for (const json::object& one : objects_in(from_, key)) visit_fields(to.emplace_back(), FieldReader(one));
  }
  void object(const char* key, const auto& more) const { more(FieldReader(object_in(from_, key))); }
  template <class T>
  void part(std::optional<T>& to, const char* proof) const {
    if (from_.contains(proof)) visit_fields(to.emplace(), *this);
  }
  template <class Enum>
  void choice(const char* key, Enum& to, std::initializer_list<Enum> values) const {
    const std::string word = get_shown(from_, key);
    const auto* found = std::ranges::find_if(values, [&](Enum one) { return word == to_string(one); });
    to = found == values.end() ? *values.begin() : *found;
  }
  void either(const char* key, bool& to, const char* yes, const char* /*no*/) const {
    to = get_shown(from_, key) == yes;
  }
  void text(const char* key, std::uint64_t& to) const {
    to = leading_number<std::uint64_t>(get_shown(from_, key)).value_or(0);
  }
  template <class T>
  void derived(const char* /*key*/, T /*value*/) const {}

 private:
  const json::object& from_;
};

}  // namespace

// Not negative, and small enough that sums and products of several values stay finite.
double read_amount(const json::object& object, std::string_view key) {
  const double number = get_double(object, key).value_or(0);
  return std::isfinite(number) && number > 0 ? std::min(number, 1e18) : 0;
}

Result<Record> record_from_json(const json::object& object) {
  const std::string schema = get_shown(object, "schema");
  if (schema != kRecordSchema) {
    if (schema.starts_with("spark-stage-bench/")) {
      return fail(Errc::Invalid,
                  "the record has the schema " + schema + ", this program knows " + kRecordSchema,
                  "read it with the spark-stage that wrote it, or measure again");
    }
    return fail(Errc::Invalid, "it is no record of spark-stage bench",
                "give the folder or record.json of a run");
  }
  Record record;
  visit_fields(record, FieldReader(object));
  for (Cell& cell : record.cells) {
    if (cell.seconds < 1e-6) cell.seconds = 0;  // too short for a rate
  }
  return record;
}

}  // namespace spark::bench
