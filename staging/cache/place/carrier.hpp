// Takes single copies of a cache to another folder.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"
#include "staging/cache/folder/cache_folder.hpp"
#include "staging/cache/place/relocation.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {

struct Carried {
  Bytes bytes = 0;      // that were copied; 0: all of them by an earlier call
  std::string trouble;  // why the copy can't be had; empty means that it is in the new folder
};

class Carrier {
 public:
  // All outlive the carrier.
  Carrier(const CacheFolder& from, const CacheFolder& to, const CopyOptions& options,
          const RelocationHooks& hooks, const StopFlag& stop)
      : from_(from), to_(to), options_(options), hooks_(hooks), stop_(stop) {}

  // The copy at `from`, compared with its manifest, as `to`; what an earlier call has begun at `filling` is
  // taken over; the caller holds kFilling. Only a drive that can't read this one copy makes it a trouble: any
  // other error ends the move.
  Result<Carried> carry(const std::string& dataset, const Destination& from,
                        const std::filesystem::path& filling, const Destination& to);

 private:
  const CacheFolder& from_;
  const CacheFolder& to_;
  const CopyOptions& options_;
  const RelocationHooks& hooks_;
  const StopFlag& stop_;

  Result<Carried> without(Error error) const;
  Result<> verify(const std::filesystem::path& copy, ManifestReader& manifest, const ProgressSink& progress);
  Result<> publish(const std::filesystem::path& filling, ManifestReader& reader, const Destination& to);
};

}  // namespace spark::staging
