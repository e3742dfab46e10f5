#include "tests/histories/copies/host/catalog_file.hpp"

#include <sqlite3.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/histories/copies/host/places.hpp"

namespace spark::histories::copies {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames = {"catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm"};

fs::path path_of(const char* name) {
  return fs::path(places::kState) / name;
}

}  // namespace

bool CatalogFile::exists() {
  return fs::exists(path_of(kNames[0]));
}

void CatalogFile::lose() {
  for (const char* name : kNames) fs::remove(path_of(name));
}

void CatalogFile::damage() {
  sound_.clear();
  for (const char* name : kNames) {
    std::ifstream in(path_of(name), std::ios::binary);
    if (in) sound_[name] = {std::istreambuf_iterator<char>(in), {}};
  }
  std::fstream file(path_of(kNames[0]), std::ios::binary | std::ios::in | std::ios::out);
  file << std::string(512, '\x5a');
}

void CatalogFile::repair() {
  lose();
  for (const auto& [name, bytes] : sound_) std::ofstream(path_of(name.c_str()), std::ios::binary) << bytes;
}

void CatalogFile::lock() {
  locked_by_ = std::make_unique<Process>([] {
    sqlite3* database = nullptr;
    sqlite3_open(path_of(kNames[0]).c_str(), &database);
    sqlite3_exec(database, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr);
  });
}

}  // namespace spark::histories::copies
