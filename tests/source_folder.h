// Where the repository is, for tests that read its documents and data.
#pragma once

#include <filesystem>

std::filesystem::path source_folder();
