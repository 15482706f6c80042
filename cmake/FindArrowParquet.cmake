# Finds Apache Arrow's readers of Parquet files: as a package with CMake files, else in the Python package pyarrow beside
# LibTorch's wheel, which has the libraries and their headers. Makes the target ArrowParquet::ArrowParquet.
find_package(Parquet CONFIG QUIET)
if(TARGET Parquet::parquet_shared)
  set(ArrowParquet_LIBRARY Parquet::parquet_shared)
else()
  get_filename_component(zoo_site_packages "${TORCH_INSTALL_PREFIX}" DIRECTORY)
  set(zoo_pyarrow "${zoo_site_packages}/pyarrow")
  file(GLOB zoo_arrow_files "${zoo_pyarrow}/libarrow.so.*")
  file(GLOB zoo_parquet_files "${zoo_pyarrow}/libparquet.so.*")
  if(zoo_arrow_files AND zoo_parquet_files AND EXISTS "${zoo_pyarrow}/include/parquet/arrow/reader.h")
    list(GET zoo_arrow_files 0 ArrowParquet_ARROW)
    list(GET zoo_parquet_files 0 ArrowParquet_LIBRARY)
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ArrowParquet REQUIRED_VARS ArrowParquet_LIBRARY)
if(ArrowParquet_FOUND AND NOT TARGET ArrowParquet::ArrowParquet)
  if(ArrowParquet_ARROW)
    add_library(ArrowParquet::ArrowParquet UNKNOWN IMPORTED)
    set_target_properties(ArrowParquet::ArrowParquet PROPERTIES
      IMPORTED_LOCATION "${ArrowParquet_LIBRARY}"
      INTERFACE_LINK_LIBRARIES "${ArrowParquet_ARROW}"
      INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${zoo_pyarrow}/include"
      INTERFACE_INCLUDE_DIRECTORIES "${zoo_pyarrow}/include")
    get_filename_component(ZOO_ARROW_DIRECTORY "${ArrowParquet_ARROW}" DIRECTORY)
  else()
    add_library(ArrowParquet::ArrowParquet INTERFACE IMPORTED)
    target_link_libraries(ArrowParquet::ArrowParquet INTERFACE Parquet::parquet_shared)
  endif()
endif()
