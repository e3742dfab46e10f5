// Names in folders of checkpoints, on this host and on a volume, and the deletion of one of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/copy/partial/own_rest.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

Result<std::vector<std::string>> names_of(const std::filesystem::path& folder);

// For a new hidden name, another one each time: others may have taken a known name.
std::string random_digits();

// What is still to be deleted, under a hidden name. None: it is gone.
using Removal = std::optional<OwnRest>;
// An entry disappears by one durable step before any of it is deleted: after a power cut it is either
// complete, or its name is gone. Refused, and the name stays, if it is not the one that was `checked`. The
// steps of the hook: "checked"; "moved", when it is away and closed to others: after an error it gets its
// name back.
Result<Removal> rename_for_removal(const std::filesystem::path& folder, const std::string& name,
                                   const RootIdentity& checked, const StepHook& hook = {});
Result<> remove(Removal removal);
// Denied if this user may not empty one of its folders: a deletion would end in the middle. A job that runs
// as root in a container leaves folders of root.
Result<> check_deletable(const std::filesystem::path& path);
// Deletes what an interrupted removal of this user has left (OwnRest). Goes on after a failure, and returns
// the first: also that a rest of this user stays for want of proof, unless the caller asks for these in
// `unproven`, a sentence for each.
Result<> finish_removals(const std::filesystem::path& folder, std::vector<std::string>* unproven = nullptr);

}  // namespace spark::staging
