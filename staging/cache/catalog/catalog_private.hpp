// Shared by the parts of the catalog.
#pragma once

#include <string_view>
#include <utility>

#include "staging/cache/catalog/catalog.hpp"
#include "staging/cache/catalog/catalog_database.hpp"

namespace spark::staging {

struct Catalog::Database {
  DatabasePtr handle;
  std::string reading, writing;  // "reading /var/lib/…": begin its messages

  sqlite3* get() const { return handle.get(); }

  template <class... Values>
  Result<> change(std::string_view sql, const Values&... values) const {
    return staging::change(get(), writing, sql, values...);
  }

  // Calls `take` for each row.
  template <class Take, class... Values>
  Result<> read(std::string_view sql, const Take& take, const Values&... values) const {
    Statement statement(get(), sql);
    statement.bind(values...);
    int code = SQLITE_DONE;
    while ((code = statement.step()) == SQLITE_ROW) take(std::as_const(statement));
    return code == SQLITE_DONE ? Result<>() : sqlite_error(get(), reading);
  }
};

}  // namespace spark::staging
