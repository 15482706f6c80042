#pragma once
// The two forms of files of torch.save(): what they hold, and where in them the numbers of storages are.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "io/formats/file_bytes.h"
#include "io/formats/pickle_values.h"
#include "io/formats/zip_archive.h"

namespace zoo {

class StoragePlaces {
 public:
  /// Reads the values of `file`, which must outlive it. `top`: the outermost one. Throws CheckpointError: not
  /// a file of torch.save(), or damaged.
  StoragePlaces(const FileBytes& file, PickleValues& values, ValueId& top);

  /// Throws CheckpointError if the file has no such storage, or one of another size.
  ZipArchive::Range place_of(const PickledStorage& storage) const;

 private:
  void read_archive(PickleValues& values, ValueId& top);
  void read_older_form(PickleValues& values, ValueId& top);

  const FileBytes& file_;
  std::optional<ZipArchive> archive_;
  std::string folder_;                               // in the archive: "archive/"
  std::map<std::string, ZipArchive::Range> ranges_;  // in the older form, by key
};

}  // namespace zoo
