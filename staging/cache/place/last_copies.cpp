#include "staging/cache/place/last_copies.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/text.hpp"
#include "staging/cache/place/begun.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/files/source_trouble.hpp"
#include "staging/files/space.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

struct OldCopy {
  std::uint64_t generation = 0;
  Destination place;
  std::string dataset;  // the name of its folder, if its manifest can't be read
  bool is_doubtful = false;
  Bytes bytes = 0, allocated = 0;
  std::string hash{};  // empty: its manifest can't be read
  std::string trouble{};
};

class Bringer {
 public:
  Bringer(CacheStore& store, const CacheFolder& old, Carrier& carrier,
          const std::function<Result<>()>& work_in, std::chrono::milliseconds patience)
      : store_(store), old_(old), carrier_(carrier), work_in_(work_in), patience_(patience) {}

  Result<LastCopiesBrought> all() {
    const auto keys = old_.keys();
    if (!keys) return keys.take_error();
    for (const std::string& key : *keys)
      if (auto brought = bring_newest(key); !brought) return brought.take_error();
    return std::move(done_);
  }

 private:
  CacheStore& store_;
  const CacheFolder& old_;
  Carrier& carrier_;
  const std::function<Result<>()>& work_in_;
  const std::chrono::milliseconds patience_;
  bool works_in_ = false;
  LastCopiesBrought done_;

  Result<> bring_newest(const std::string& key) {
    auto copies = copies_of(key);
    auto rows = rows_here(key);
    if (!copies) return copies.take_error();
    if (!rows) return rows.take_error();
    std::optional<LackingCopy> lacking;
    for (const OldCopy& copy : *copies) {
      const bool is_there = std::ranges::any_of(*rows, [&](const GenerationRow& row) {
        const bool is_as_good = copy.is_doubtful || !row.is_doubtful;
        return is_as_good && (row.generation > copy.generation || row.hash == copy.hash);
      });
      if (is_there) return {};
      auto carried = copy.trouble.empty() ? bring(copy) : Carried{0, copy.trouble};
      if (!carried) return carried.take_error();
      if (carried->trouble.empty()) {
        done_.brought.push_back({copy.dataset, copy.bytes});
        return {};
      }
      if (!lacking) lacking = LackingCopy{{copy.dataset, copy.bytes}, std::move(carried->trouble)};
    }
    if (lacking) done_.lacking.push_back(std::move(*lacking));
    return {};
  }

  // The cache's own copies. Until the recovery after a reload the catalog still has what is in the old
  // folder.
  Result<std::vector<GenerationRow>> rows_here(const std::string& key) {
    auto rows = store_.generations();
    if (!rows) return rows;
    std::erase_if(*rows, [&](const GenerationRow& row) {
      return folder_name(row.dataset) != key || row.state != GenerationState::Ready || row.is_suspect;
    });
    std::vector<GenerationRow> here;
    for (GenerationRow& row : *rows) {
      const auto there = store_.folder().has_generation(key, row.generation);
      if (!there) return there.take_error();
      auto manifest = ManifestReader::open(store_.folder().place(row.dataset, row.generation).manifest());
      const auto summary = manifest ? summary_of(*manifest) : fail(manifest.error());
      if (*there && summary && summary->hash == row.hash) here.push_back(std::move(row));
    }
    return here;
  }

  // The newest first, but those of a source that was being written last.
  Result<std::vector<OldCopy>> copies_of(const std::string& key) const {
    const auto numbers = old_.generations(key);
    if (!numbers) return numbers.take_error();
    std::vector<OldCopy> copies;
    for (const std::uint64_t number : *numbers) {
      OldCopy copy{number, {old_.data() / key, std::to_string(number)}, key};
      auto manifest = ManifestReader::open(copy.place.manifest());
      if (!manifest && manifest.error().kind == Errc::NotFound) continue;  // it was not published
      auto summary = manifest ? summary_of(*manifest) : fail(manifest.error());
      if (!summary && !is_damage(summary.error())) return summary.take_error();
      if (summary) {
        copy.dataset = manifest->header().dataset;
        copy.is_doubtful = manifest->header().is_doubtful;
        copy.bytes = summary->bytes;
        copy.allocated = summary->footprint.bytes;
        copy.hash = summary->hash;
      } else {
        copy.trouble = summary.error().message();
      }
      copies.push_back(std::move(copy));
    }
    std::ranges::sort(copies, [](const OldCopy& a, const OldCopy& b) {
      return std::tie(a.is_doubtful, b.generation) < std::tie(b.is_doubtful, a.generation);
    });
    return copies;
  }

  // Under a number of its own: a copy of the same number may be in use.
  Result<Carried> bring(const OldCopy& copy) {
    const CacheFolder& to = store_.folder();
    if (auto begun = works_in_ ? Result<>() : work_in_(); !begun) return begun.take_error();
    works_in_ = true;
    auto area = PartialArea::open_within(to.partial(copy.dataset), patience_);
    if (!area && area.error().kind == Errc::Unavailable)
      area.error().hint = "`spark-stage jobs` shows what is going on; repeat this once that has ended";
    if (!area) return fail_with(std::move(area.error()), "bringing " + printable(copy.dataset));
    const auto known = store_.damage().of(copy.dataset);
    if (!known) return known.take_error();
    const auto generation = unused_generation(store_, copy.dataset);
    if (!generation) return generation.take_error();
    const std::filesystem::path filling = filling_of(to, to.place(copy.dataset, copy.generation));
    if (auto room = check_room(copy, filling); !room) return room.take_error();
    auto carried = carrier_.carry(copy.dataset, copy.place, filling, to.place(copy.dataset, *generation));
    if (!carried || !carried->trouble.empty()) return carried;
    if (auto entered = enter(copy, *generation, *area, *known); !entered) return entered.take_error();
    return carried;
  }

  // It was compared just now, so damage that was found before is not in it.
  Result<> enter(const OldCopy& copy, std::uint64_t generation, PartialArea& area, const Damage& known) {
    if (auto entered = store_.recover_key(folder_name(copy.dataset), area); !entered) return entered;
    const auto rows = store_.ready_generations(copy.dataset);
    if (!rows) return rows.take_error();
    const auto row = std::ranges::find(*rows, generation, &GenerationRow::generation);
    if (row == rows->end())
      return fail(Errc::Failed,
                  "bringing " + printable(copy.dataset) + ": its copy was not found afterwards");
    return store_.note_verified(*row, "", known);
  }

  Result<> check_room(const OldCopy& copy, const std::filesystem::path& filling) const {
    const auto space = space_of(store_.folder().path());
    if (!space) return space.take_error();
    const auto taken = taken_by(filling);
    if (!taken) return fail_with(taken.error(), "bringing " + printable(copy.dataset));
    const Bytes needed = copy.allocated - std::min(copy.allocated, *taken);
    if (needed <= space->free) return {};
    return fail(Errc::NoSpace,
                "bringing " + printable(copy.dataset) + " from " + printable(old_.path().native()) +
                    ", which alone has it: it takes " + format_bytes(needed) + " more, and " +
                    format_bytes(space->free) + " are free",
                "evict datasets that are not needed: `spark-stage ls` lists them");
  }
};

}  // namespace

Result<LastCopiesBrought> bring_last_copies(CacheStore& store, const CacheFolder& old, Carrier& carrier,
                                            const std::function<Result<>()>& work_in,
                                            std::chrono::milliseconds patience) {
  return Bringer(store, old, carrier, work_in, patience).all();
}

}  // namespace spark::staging
