#include "staging/copy/copy.hpp"

#include "base/text.hpp"
#include "staging/copy/copy_with.hpp"
#include "staging/copy/fill.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/need.hpp"
#include "staging/copy/verify/digest_check.hpp"
#include "staging/copy/verify/published_digests.hpp"
#include "staging/copy/verify/verify.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"

namespace spark::staging {
namespace {

// A copy into its own source would never be its equal; one over what holds its source would delete it.
Result<> check_apart(const Tree& source, const Destination& destination) {
  const std::string from = source.root();
  const std::string to = destination.path().native();
  if (!is_inside(to, from) && !is_inside(from, to)) return {};
  return fail(Errc::Invalid,
              "copying " + printable(from) + " to " + printable(to) + ": one is inside the other",
              "choose a destination outside the source");
}

class Copy {
 public:
  Copy(const CopyHooks& hooks, const CopyOptions& options, const ProgressSink& progress, const StopFlag& stop)
      : hooks_(hooks), options_(options), stop_(stop), monitor_(progress) {}

  Result<CopyReport> go(const std::filesystem::path& from, const std::filesystem::path& to) {
    auto source = open_tree(from);
    if (!source) return source.take_error();
    auto destination = destination_of(to);
    if (!destination) return destination.take_error();
    if (auto apart = check_apart(*source, *destination); !apart) return apart.take_error();
    auto area =
        monitor_.during(CopyPhase::Walking, [&] { return PartialArea::open(destination->partial(), stop_); });
    if (!area) return area.take_error();
    if (auto ready = recover_publishing(*destination, *area); !ready) {
      return ready.take_error();
    }
    auto earlier = earlier_copy(*destination);
    if (!earlier) return earlier.take_error();
    if (*earlier) {
      auto intact =
          monitor_.during(CopyPhase::Walking, [&] { return check_intact(*destination, **earlier); });
      if (!intact) return intact.take_error();
    }
    auto walked = monitor_.during(
        CopyPhase::Walking, [&] { return walk_source(*source, options_.exclude, options_.links, stop_); });
    if (!walked) return walked.take_error();
    if (*earlier && (*earlier)->rewind() && is_same_source(**earlier, walked->entries))
      return unchanged(*destination, **earlier, *walked, *area);
    std::optional<Previous> previous;
    if (*earlier) {
      auto tree = open_tree(destination->path());
      if (tree) previous = Previous{std::move(*tree), destination->manifest(), 0, 0, true};
    }
    return copy_walked(*source, std::move(*walked), *destination, *area, std::move(previous));
  }

 private:
  const CopyHooks& hooks_;
  const CopyOptions& options_;
  const StopFlag& stop_;
  Monitor monitor_;

  // What was changed since is somebody's work: neither replaced nor called a copy of the source.
  Result<> check_intact(const Destination& destination, ManifestReader& manifest) {
    const auto copy = open_tree(destination.path());
    if (!copy) return copy.take_error();
    const auto differences = compare_metadata(*copy, manifest, 1, stop_);
    if (!differences) return differences.take_error();
    if (differences->empty()) return {};
    return fail(
        Errc::Refused,
        "copying to " + copy->shown("") + ": it was changed since it was copied: " + differences->front(),
        "move it away or delete it, then copy again");
  }

  Result<CopyReport> unchanged(const Destination& destination, ManifestReader& manifest, const Walked& walked,
                               PartialArea& area) {
    if (auto cleared = area.clear(); !cleared) return cleared.take_error();
    if (auto again = manifest.rewind(); !again) return again.take_error();
    const auto summary = summary_of(manifest);
    if (!summary) return summary.take_error();
    CopyReport report = report_of(*summary, monitor_);
    report.unchanged = true;
    if (options_.sha256) {
      const auto checked =
          check_digests(destination.path(), destination.manifest(), options_, monitor_, stop_);
      if (!checked) return checked.take_error();
      report.sha256_files = *checked;
    }
    add_notes(report, walked);
    return report;
  }

  Result<CopyReport> copy_walked(const Tree& source, Walked walked, const Destination& destination,
                                 PartialArea& area, std::optional<Previous> previous) {
    if (options_.sha256) {
      if (auto any = require_published_digests(source, walked.entries); !any) return any.take_error();
    }
    Resumed resumed = resume(area, walked.entries);
    if (previous) find_unchanged(*previous, area, walked.entries, resumed);
    const Need need = need_of(walked.entries, resumed, area);
    if (auto fits = check_space(need, destination.folder, options_.keep_free); !fits) {
      return fits.take_error();
    }
    const WalkNotes notes = walked;
    FillJob job{&source,
                std::move(walked),
                &area,
                std::move(resumed),
                std::move(previous),
                &options_,
                &stop_,
                SystemClock().wall(),
                hooks_.before_read};
    auto filled = fill(std::move(job), monitor_);
    if (!filled) return filled.take_error();
    filled->manifest.source = source.root();
    const auto sealed =
        monitor_.during(CopyPhase::Publishing, [&] { return seal(area, std::move(filled->manifest)); });
    if (!sealed) return sealed.take_error();
    if (options_.verify) {
      auto same = verify_partial(area, options_, monitor_, stop_);
      if (!same) return same.take_error();
    }
    Result<std::uint64_t> checked = 0;
    if (options_.sha256) checked = check_digests(area.data(), area.manifest(), options_, monitor_, stop_);
    if (!checked) return checked.take_error();
    const auto published = monitor_.during(
        CopyPhase::Publishing, [&] { return publish(destination, area, sealed->root, hooks_.step); });
    if (!published) return published.take_error();
    CopyReport report = report_of(sealed->summary, monitor_);
    report.sha256_files = *checked;
    report.resumed_bytes = filled->resumed_bytes;
    report.unchanged_bytes = filled->unchanged_bytes;
    report.warnings = std::move(filled->warnings);
    add_notes(report, notes);
    return report;
  }
};

}  // namespace

Result<CopyReport> copy_with(const CopyHooks& hooks, const std::filesystem::path& source,
                             const std::filesystem::path& destination, const CopyOptions& options,
                             const ProgressSink& progress, const StopFlag& stop) {
  return Copy(hooks, options, progress, stop).go(source, destination);
}

Result<CopyReport> copy(const std::filesystem::path& source, const std::filesystem::path& destination,
                        const CopyOptions& options, const ProgressSink& progress, const StopFlag& stop) {
  return copy_with({}, source, destination, options, progress, stop);
}

}  // namespace spark::staging
