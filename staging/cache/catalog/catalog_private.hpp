// Shared by the parts of the catalog.
#pragma once

#include "staging/cache/catalog/catalog.hpp"
#include "staging/cache/catalog/catalog_database.hpp"

namespace spark::staging {

struct Catalog::Database {
  DatabasePtr handle;
  std::string reading, writing;  // "reading /var/lib/…": begin its messages

  sqlite3* get() const { return handle.get(); }
};

}  // namespace spark::staging
