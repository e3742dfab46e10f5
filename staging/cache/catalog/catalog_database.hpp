// SQLite access for the catalog: opening, migration to the newest schema, prepared statements.
#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "staging/cache/catalog/catalog.hpp"

namespace spark::staging {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
using DatabasePtr = std::unique_ptr<sqlite3, CloseDatabase>;

// `doing` begins every message. On a full drive it is an image in memory, and each change of it fails with
// NoSpace.
Result<DatabasePtr> open_database(const std::filesystem::path& file, const std::string& doing,
                                  IfMissing if_missing);

bool is_image(sqlite3* database);

tl::unexpected<Error> sqlite_error(sqlite3* database, const std::string& doing);

// Times are kept as microseconds since 1970.
inline std::int64_t to_microseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}
// A damaged file may have a time outside the clock's range: it is clamped to that range.
inline WallTime from_microseconds(std::int64_t count) {
  constexpr std::int64_t kYear2200 = 7'258'118'400'000'000;
  return WallTime(std::chrono::microseconds(std::clamp<std::int64_t>(count, 0, kYear2200)));
}
inline std::optional<std::int64_t> to_microseconds(const std::optional<WallTime>& time) {
  if (!time) return std::nullopt;
  return to_microseconds(*time);
}

// One prepared statement. Text is bound as raw bytes: names need not be UTF-8.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view sql) {
    sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  template <class... Values>
  Statement& bind(const Values&... values) {
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }

  // SQLITE_ROW, SQLITE_DONE, or an error code.
  int step() { return statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_); }

  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::uint64_t count(int column) const { return static_cast<std::uint64_t>(number(column)); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::string text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return {bytes == nullptr ? "" : bytes,
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_ = nullptr;

  void bind_one(int index, const std::string& value) {
    sqlite3_bind_text(statement_, index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  }
  void bind_one(int index, const std::optional<std::int64_t>& value) {
    if (value) sqlite3_bind_int64(statement_, index, *value);
  }
  void bind_one(int index, double value) { sqlite3_bind_double(statement_, index, value); }
  template <class Number>
  requires std::is_integral_v<Number>
  void bind_one(int index, Number value) {
    sqlite3_bind_int64(statement_, index, static_cast<std::int64_t>(value));
  }
};

template <class... Values>
Result<> change(sqlite3* database, const std::string& doing, std::string_view sql, const Values&... values) {
  Statement statement(database, sql);
  const int code = statement.bind(values...).step();
  if (code != SQLITE_DONE && code != SQLITE_ROW) return sqlite_error(database, doing);
  return {};
}

// Atomic and exclusive: other processes wait.
Result<> transaction(sqlite3* database, const std::string& doing, const std::function<Result<>()>& work);

}  // namespace spark::staging
