// A view of a real copy.
#pragma once

#include "staging/copy/copy_with.hpp"
#include "tests/unit/staging/view/view_fixture.hpp"

namespace spark::staging::test {

class ViewCopyTest : public ViewTest {
 protected:
  std::filesystem::path source_ = folder_ / "source", copy_ = folder_ / "copy";
  StopFlag stop_{false};
  CopyHooks hooks_;
  CopyOptions options_;
  std::function<Result<>()> is_still_so_;
  std::string no_view_;           // why there is none
  std::unique_ptr<ViewMap> map_;  // as the view's process has it
  std::optional<ViewTree> tree_;
  std::optional<ViewReader> reader_;

  void begun() {
    auto map = ViewMap::open(place_);
    ASSERT_OK(map);
    reader_.reset();
    map_ = std::move(*map);
    tree_ = tree_of(*map_);
    reader_.emplace(*tree_, *map_);
  }

  Result<CopyReport> copy_now() {
    CopyViewer viewer(
        place_, "faces", folder_ / ".copy.spark-partial/data", is_still_so_,
        {[this](Bytes, std::uint64_t) { begun(); }, [this](const std::string& why) { no_view_ = why; }});
    options_.viewer = &viewer;
    auto report = copy_with(hooks_, source_, copy_, options_, kQuiet, stop_);
    if (report) viewer.published(copy_, folder_ / ".copy.spark-manifest");
    return report;
  }
  std::optional<std::string> whole(std::string_view path) {
    return ViewTest::whole(*reader_, *tree_, find(*tree_, path));
  }
};

}  // namespace spark::staging::test
