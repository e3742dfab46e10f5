// Gives a finished partial copy its name: by one rename, after everything in it is durable.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "base/result.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {

// Tests stop the world after a step: what is then on the disk is what a crash leaves there.
using StepHook = std::function<Result<>(const char* step)>;
inline Result<> after(const StepHook& hook, const char* step) {
  return hook ? hook(step) : Result<>();
}

// A destination of `copy`, and the files that go with it in the same folder.
struct Destination {
  std::filesystem::path folder;  // canonical
  std::string name;

  std::filesystem::path path() const { return folder / name; }
  std::filesystem::path manifest() const;
  std::filesystem::path partial() const;
};

// NotFound if its folder does not exist; Invalid for a name that can't be one.
Result<Destination> destination_of(const std::filesystem::path& path);

// The manifest of the copy of ours that is at the destination; none if nothing is there. Refused if what is
// there is not what we published.
Result<std::optional<ManifestReader>> earlier_copy(const Destination& destination);

// What publishing has to know of a partial copy whose manifest is written.
struct Sealed {
  ManifestHeader header;
  Entry root;
  Summary summary;
};

// Writes the manifest of the area's data, which is flushed already. From here on it vouches for them.
Result<Sealed> seal(PartialArea& area, Manifest manifest);

// Publishes the area's data with its manifest; what was there before is deleted.
Result<> publish(const Destination& destination, PartialArea& area, const Entry& root, const StepHook& hook);

// Whether the error tells that what was read is not there or not whole: reading it went well.
bool is_answer(const Error& error);

// Completes a publishing that a crash cut short after the rename. One cut short before it leaves a finished
// partial copy: resume() takes it over.
Result<> recover_publishing(const Destination& destination, PartialArea& area);

// rename(2) that replaces nothing.
Result<> rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace spark::staging
