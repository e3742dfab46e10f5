#include "staging/copy/pipeline.hpp"

#include "staging/copy/verify/digest_check.hpp"
#include "staging/copy/verify/published_digests.hpp"
#include "staging/copy/verify/verify.hpp"
#include "staging/files/source_trouble.hpp"

namespace spark::staging {

Result<CopyReport> copy_walked(CopyJob job, const PipelineEnds& ends, Monitor& monitor) {
  const CopyOptions& options = *job.options;
  PartialArea& area = *job.area;
  if (options.sha256) {
    if (auto any = require_published_digests(*job.source, job.walked.entries); !any) return any.take_error();
  }
  Resumed resumed = resume(area, job.walked.entries);
  if (job.previous) find_unchanged(*job.previous, area, job.walked.entries, resumed);
  if (auto room = ends.make_room(job.walked.entries, resumed); !room) return room.take_error();

  const WalkNotes notes = job.walked;
  const StopFlag& stop = *job.stop;
  auto filled = fill(std::move(job), std::move(resumed), monitor);
  if (!filled) return filled.take_error();
  if (ends.correct) {
    const auto copy = open_tree(area.data());
    auto right = copy ? ends.correct(*copy, filled->manifest.entries) : fail(copy.error());
    if (!right) return right.take_error();
  }
  ends.name(filled->manifest);
  const auto sealed =
      monitor.during(CopyPhase::Publishing, [&] { return seal(area, std::move(filled->manifest)); });
  if (!sealed) return sealed.take_error();
  // Digests that differ would be blamed on the source: first, what was taken over has to be as it was copied.
  if (options.verify || (options.sha256 && filled->resumed_bytes + filled->unchanged_bytes > 0)) {
    auto same = verify_partial(area, options, monitor, stop);
    if (!same && is_damage(same.error()) && ends.found_damage) ends.found_damage();
    if (!same) return same.take_error();
  }
  Result<std::uint64_t> checked = 0;
  if (options.sha256) checked = check_digests(area.data(), area.manifest(), options, monitor, stop);
  if (!checked) return checked.take_error();
  if (auto right = ends.check_content ? ends.check_content() : Result<>(); !right) return right.take_error();
  const Bytes not_copied = filled->resumed_bytes + filled->unchanged_bytes;
  const auto published =
      monitor.during(CopyPhase::Publishing, [&] { return ends.publish(*sealed, not_copied); });
  if (!published) return published.take_error();

  CopyReport report = report_of(sealed->summary, monitor);
  report.sha256_files = *checked;
  report.resumed_bytes = filled->resumed_bytes;
  report.unchanged_bytes = filled->unchanged_bytes;
  report.warnings = std::move(filled->warnings);
  add_notes(report, notes);
  return report;
}

}  // namespace spark::staging
