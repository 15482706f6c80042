#include "io/formats/storage_places.h"

#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "io/formats/unpickler.h"

namespace zoo {
namespace {

constexpr std::string_view kValues = "data.pkl";
/// The number with which the older form begins, as its bytes.
constexpr std::string_view kMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kVersion = 1001;
/// The first number of weights of llm.c (train_gpt2.py, write_model).
constexpr uint64_t kMagicOfLlmC = 20240326;

/// The folder of the archive that holds everything, with a slash at its end.
std::string folder_of(const FileBytes& file, const ZipArchive& archive) {
  std::string folder;
  bool is_found = false;
  for (const auto& [name, entry] : archive.entries()) {
    const bool is_values = name == kValues || name.ends_with("/data.pkl");
    if (!is_values) continue;
    if (is_found) file.fail("it is an archive of several files of torch.save(): unpack it");
    folder = name.substr(0, name.size() - kValues.size());
    is_found = true;
  }
  if (!is_found) file.fail("it is a ZIP archive, but none of torch.save(): it has no data.pkl");
  if (archive.contains(folder + "constants.pkl"))
    file.fail(
        "it holds a program (TorchScript), which is not run; in Python, save "
        "torch.jit.load(FILE).state_dict() with torch.save()");
  return folder;
}

}  // namespace

StoragePlaces::StoragePlaces(const FileBytes& file, PickleValues& values, ValueId& top) : file_(file) {
  constexpr size_t place_of_tar = 257;
  constexpr std::string_view tar = "ustar";
  if (begins_as_zip(file)) {
    read_archive(values, top);
  } else if (file.has(place_of_tar, tar.size()) && file.read(place_of_tar, tar.size()) == tar) {
    file.fail("a TAR archive, as PyTorch wrote it before 2018: load it with torch.load() and save it again");
  } else if (file.has(0, 4) && little_endian_number(file.read(0, 4), 0, 4) == kMagicOfLlmC) {
    file.fail(
        "raw weights of llm.c, which have no names: its dev/eval/export_hf.py makes a directory that is "
        "read");
  } else {
    read_older_form(values, top);
  }
}

void StoragePlaces::read_archive(PickleValues& values, ValueId& top) {
  archive_.emplace(file_);
  folder_ = folder_of(file_, *archive_);
  if (archive_->contains(folder_ + "byteorder")) {
    constexpr uint64_t longest = 16;
    const auto order = archive_->member(folder_ + "byteorder");
    if (order.size > longest || file_.read(order.begin, static_cast<size_t>(order.size)) != "little")
      file_.fail("its numbers are not little-endian: save it on another machine");
  }
  const auto pickle = archive_->member(folder_ + std::string(kValues));
  uint64_t begin = pickle.begin;
  top = unpickle(file_, begin, pickle.begin + pickle.size, values);
}

/// Five pickles: a magic number, a version, facts of the machine, the values, the keys of the storages. Then
/// the storages, each after its length.
void StoragePlaces::read_older_form(PickleValues& values, ValueId& top) {
  uint64_t at = 0;
  if (!file_.has(0, 2) || file_.read(0, 1) != "\x80") file_.fail("not a file of torch.save()");
  const auto magic = unpickle(file_, at, file_.size(), values);
  if (!values.is(magic, PickleKind::large) || values[magic].text() != kMagic)
    file_.fail("a pickle, but none of torch.save()");
  const auto version = unpickle(file_, at, file_.size(), values);
  if (!values.is(version, PickleKind::integer) || values[version].integer() != kVersion)
    file_.fail("of another version of torch.save() than {}", kVersion);
  const auto machine = text_items(values, unpickle(file_, at, file_.size(), values));
  const auto order = machine.find("little_endian");
  if (order != machine.end() &&
      values[order->second].content == PickleValue{PickleKind::boolean, false}.content)
    file_.fail("its numbers are not little-endian: save it on another machine");
  top = unpickle(file_, at, file_.size(), values);
  std::map<std::string, const PickledStorage*> storages;
  for (const auto& storage : values.storages) storages.emplace(storage.key, &storage);
  const auto keys = unpickle(file_, at, file_.size(), values);
  if (!values.is(keys, PickleKind::list)) file_.fail("damaged: it does not name its storages");
  for (const auto id : values[keys].elements()) {
    const auto found = values.is(id, PickleKind::text) ? storages.find(values[id].text()) : storages.end();
    if (found == storages.end()) file_.fail("damaged: it names a storage of which it does not say the type");
    constexpr size_t length_bytes = 8;
    const auto n_items = little_endian_number(file_.read(at, length_bytes), 0, length_bytes);
    at += length_bytes;
    const uint64_t item = found->second->type->item_size;
    if (n_items > file_.size() / item || !file_.has(at, n_items * item))
      file_.fail("damaged: its numbers go past the end; was it cut?");
    ranges_[found->first] = {.begin = at, .size = n_items * item};
    at += n_items * item;
  }
}

ZipArchive::Range StoragePlaces::place_of(const PickledStorage& storage) const {
  ZipArchive::Range range{};
  if (archive_) {
    range = archive_->member(folder_ + "data/" + storage.key);
  } else {
    const auto found = ranges_.find(storage.key);
    if (found == ranges_.end())
      file_.fail("damaged: it has no numbers of storage '{}'", excerpt(storage.key));
    range = found->second;
  }
  const uint64_t item = storage.type->item_size, n_stored = range.size / item;
  if (storage.first_item > n_stored || storage.n_items > n_stored - storage.first_item)
    file_.fail("damaged: storage '{}' should have {} numbers, and {} bytes are there; was it cut?",
               excerpt(storage.key), storage.n_items, range.size);
  return {.begin = range.begin + storage.first_item * item, .size = storage.n_items * item};
}

}  // namespace zoo
