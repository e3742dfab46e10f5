// The staging worker's part in a live view: lists the set's entries, and marks units that have arrived.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "staging/copy/transfer/viewer.hpp"
#include "staging/view/confirmations.hpp"
#include "staging/view/view_map.hpp"

namespace spark::staging {

// All are called from any thread, and may be empty.
struct ViewReports {
  std::function<void(Bytes bytes, std::uint64_t files)> begun{};        // readers may begin; totals
  std::function<void(const std::string& why)> none{};                   // there can be no view
  std::function<void(const std::string& why, bool is_whole)> failed{};  // a file, or the view that there was
  std::function<void(const std::string& why)> had_failed{};  // the first such file, in an earlier attempt
};

class CopyViewer final : public Viewer {
 public:
  // `dataset`: its name. `copy`: the folder of the copy while it is made. `is_still_so`: whether all that was
  // read so far is of one state of the source, see Source; may be empty. With Error::is_of_source that is not
  // known now, and it is asked again.
  CopyViewer(ViewPlace place, std::string dataset, std::filesystem::path copy,
             std::function<Result<>()> is_still_so, ViewReports reports);

  bool begin(const Entries& entries, bool has_source, const std::string& why_not) override;
  void kept(const Entry& entry, const UnitRange& units) override;
  void arrived(const Entry& entry, const UnitRange& units) override;
  void withdraw(const Entry& entry, bool has_changed) override;
  Result<> check() const override { return confirmations_.check(); }
  std::optional<WantedOfFile> take_wanted(bool is_small) override;
  void published(const std::filesystem::path& copy, const std::filesystem::path& manifest) override;
  const std::optional<Error>& error() const { return error_; }  // why there is no view, if it was begun

 private:
  ViewPlace place_;
  std::string dataset_;
  std::filesystem::path copy_;
  ViewReports reports_;
  std::optional<Error> error_;
  const Entries* entries_ = nullptr;
  std::vector<std::uint64_t> first_units_;  // by entry, and the end
  std::unique_ptr<ViewMap> map_;            // none: there is no view
  bool has_source_ = true;
  std::vector<bool> were_here_;  // units, at the end of the attempt before: their state was confirmed then

  Confirmations confirmations_;  // after the map

  bool has_none(Error why);
  void report_earlier() const;
  UnitRange units_of(const Entry& entry) const;
  UnitRange part_of(const Entry& entry, const UnitRange& units) const;
  bool is_begun(const Digest& set, std::uint64_t units) const;
};

}  // namespace spark::staging
