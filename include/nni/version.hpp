#pragma once

/// @file
/// Version of the library. The build reads it from here, so it is written in one place only.

#define NNI_VERSION_MAJOR 0  ///< changes when a program that used the library has to be edited
#define NNI_VERSION_MINOR 1  ///< changes when something is added
#define NNI_VERSION_PATCH 0  ///< changes when something is repaired

/// The three numbers as one, for comparisons in `#if`: 1.2.3 is 10203.
#define NNI_VERSION (NNI_VERSION_MAJOR * 10000 + NNI_VERSION_MINOR * 100 + NNI_VERSION_PATCH)
