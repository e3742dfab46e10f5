// Known damage in the copies of a dataset. Damage belongs to files, and a dataset's copies
// share files: once damage was found, each copy is suspect that was not read back since, or made since
// without suspect files. The copy in progress is one of them.
//
// A dataset has one record of it, in the folder of its generations, replaced by one rename; so a rebuilt
// catalog knows it too. The catalog has a second copy of the record, for a drive that takes no more writes.
// Of two different ones, the newer counts. On a full drive the record is empty, and all copies are suspect.
// So they are while a file beside it says that damage was found when another process kept the lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "staging/cache/catalog/catalog.hpp"

namespace spark::staging {

struct Damage {
  static constexpr std::uint64_t kInProgress = 0;  // as a generation: the copy in progress

  std::uint64_t revision = 0;                    // grows with each change; 0: no damage was ever found
  std::uint64_t damaged = 0;                     // the revision that noted damage last
  std::map<std::uint64_t, std::string> found{};  // by generation: how it differs from its manifest
  std::set<std::uint64_t> sound{};               // all others are suspect

  bool makes_suspect(std::uint64_t generation) const { return revision > 0 && !sound.contains(generation); }
};

class DamageRecords {
 public:
  // `data` holds the folders of the datasets.
  DamageRecords(std::filesystem::path data, Catalog& catalog) : data_(std::move(data)), catalog_(catalog) {}

  Result<Damage> of(const std::string& dataset) const;
  // Fills in the rows' damage. Without an answer of the drive a row is suspect; the first error is returned.
  Result<> add_to(std::vector<GenerationRow>& rows) const;
  // `alter` returns false if nothing has to be changed. Several processes may do this at the same time. After
  // an error, the catalog may have the change nevertheless.
  Result<> change(const std::string& dataset, const std::function<bool(Damage&)>& alter);
  // Mismatch if the generation is suspect.
  Result<> check_sound(const std::string& dataset, std::uint64_t generation) const;
  // Before the copy in progress gets its name: the generation is sound if the copy in progress is, otherwise
  // Mismatch. Damage that is found from now on makes it suspect.
  Result<> vouch_for(const std::string& dataset, std::uint64_t generation);
  // For a dataset of which no copy is left, not even a part of one.
  Result<> drop(const std::string& dataset);

 private:
  std::filesystem::path data_;
  Catalog& catalog_;

  std::filesystem::path file(const std::string& dataset) const;
  std::filesystem::path beside(const std::string& dataset) const;
  Result<Damage> in_record(const std::string& dataset) const;
  Result<std::string> in_catalog(const std::string& dataset) const;  // empty: none
  Result<> put_in_catalog(const std::string& dataset, const std::string& record);
  Result<UniqueFd> lock(const std::string& dataset) const;
};

}  // namespace spark::staging
