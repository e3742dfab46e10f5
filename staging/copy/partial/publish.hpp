// Publishes a finished partial copy under its name: by one rename, after everything in it is durable.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/manifest/lines.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {

// Tests stop after a step: the disk then has the state that a crash would leave.
using StepHook = std::function<Result<>(const char* step)>;
inline Result<> after(const StepHook& hook, const char* step) {
  return hook ? hook(step) : Result<>();
}

inline constexpr char kPartialSuffix[] = ".spark-partial";

// A destination of `copy`, and the files that belong to it in the same folder.
struct Destination {
  std::filesystem::path folder;  // canonical, or a held_path()
  std::string name;
  std::shared_ptr<const UniqueFd> held{};  // keeps that folder open

  std::filesystem::path path() const { return folder / name; }
  std::filesystem::path manifest() const;
  std::filesystem::path partial() const;
};

// NotFound if its folder does not exist; Invalid for an impossible name.
Result<Destination> destination_of(const std::filesystem::path& path);

// Whether a manifest's copy is the object that is there now. An output may be published through NFS and read
// on its device, or the other way round, and the NFS clients of many kernels report no birth time.
bool is_same_object(const RootIdentity& recorded, const RootIdentity& now);

// Whether what this user has put into the folder may prove anything to this process: the user is its own,
// root, or the owner of the folder, who could do anything there. Others may write there and put copies
// beside.
bool is_trusted(const std::filesystem::path& folder, uid_t owner);
// This user alone, as the file system of the folder stores it.
bool is_own(const std::filesystem::path& folder, uid_t owner);
// The same of a copy, by the owner of its manifest.
bool is_trusted(const Destination& destination, const ManifestReader& manifest);

// The manifest of the earlier copy at the destination; none if nothing is there. Refused if the destination
// differs from the copy that was published, or if that is not trusted.
Result<std::optional<ManifestReader>> earlier_copy(const Destination& destination);

// The data that publishing needs of a partial copy with a written manifest.
struct Sealed {
  ManifestHeader header;
  Entry root;
  Summary summary;
};

// Of a copy that another user may list and verify, as far as that user may read it. A cache's manifest is for
// root alone: it names what is in closed folders.
Readers readers_of(const Manifest& manifest);

// Writes the manifest of the area's data, which is already flushed. From then on the manifest proves the
// data.
Result<Sealed> seal(PartialArea& area, Manifest manifest);

// InTwoSteps: where names can't be exchanged (NFS); nothing has the name in between. AsPossible: in two steps
// only there.
enum class Replacing { AtOnce, InTwoSteps, AsPossible };

// Publishes the area's data with its manifest; the previous content is deleted.
Result<> publish(const Destination& destination, PartialArea& area, const Entry& root, const StepHook& hook,
                 Replacing replacing = Replacing::AtOnce);

// Whether the error is a valid answer (the data is missing or incomplete) and not a failure to read.
bool is_answer(const Error& error);

// Completes a publishing that a crash interrupted after the rename, or between the two steps of a
// replacement. If it was interrupted before, the partial copy is finished: resume() takes it over.
Result<> recover_publishing(const Destination& destination, PartialArea& area);

// The same for all in a folder, without those in progress. Returns the first failure, which does not keep the
// others.
Result<> finish_publishings(const std::filesystem::path& folder);

// The destination whose partial folder has that name, if nothing has the destination's name as it is between
// the two steps of a replacement, or was interrupted there.
std::optional<Destination> being_replaced(const std::filesystem::path& folder, const std::string& name);

// rename(2) that never replaces a file.
Result<> rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace spark::staging
