/* Versions of the application API (mrc.h), and the version that the including program requests.
 *
 * A version is one number, major.minor.sub-minor in bits 31..24, 23..16 and 15..0, so that a later
 * version compares greater. A program that needs another version than the current one defines
 * MRC_API_VER_USED before the first include, as MRC_API_VER(...) or MRC_API_VER_LATEST; the same
 * for MRC_VENDOR_API_VER_USED, which counts a vendor's additions. A version that does not exist is
 * a compiler error; a deprecated version is a warning.
 *
 * Names, values and the include guards are those of OCP's headers: a program compiles against
 * either, and if both are included, the first one counts. Casts are not possible here, because the
 * preprocessor evaluates these macros. The `0u` makes them unsigned for the compiler, since 0xff <<
 * 24 does not fit an int. */
#ifndef _MRC_API_VER_H_
#define _MRC_API_VER_H_

#define MRC_API_VER_MAJOR_OFFSET 24
#define MRC_API_VER_MINOR_OFFSET 16
#define MRC_API_VER_SUBMINOR_OFFSET 0

#define MRC_API_VER(_major, _minor, _sub_minor)                                                    \
  (((0u + (_major)) << MRC_API_VER_MAJOR_OFFSET) | ((0u + (_minor)) << MRC_API_VER_MINOR_OFFSET) | \
   ((0u + (_sub_minor)) << MRC_API_VER_SUBMINOR_OFFSET))

/* The current version at the place where the program is compiled. */
#define MRC_API_VER_LATEST MRC_API_VER(0xFF, 0xFF, 0xFFFF)

#define MRC_API_CURRENT_VERSION MRC_API_VER(1, 0, 1)
#define MRC_API_LAST_SUPPORTED_VERSION MRC_API_VER(0, 0, 0)

#ifndef MRC_API_VER_USED
#define MRC_API_VER_USED MRC_API_CURRENT_VERSION
#elif MRC_API_VER_USED == MRC_API_VER_LATEST
#undef MRC_API_VER_USED
#define MRC_API_VER_USED MRC_API_CURRENT_VERSION
#endif

#if MRC_API_VER_USED > MRC_API_CURRENT_VERSION
#error "MRC_API_VER_USED names an API that these headers do not have yet; at most 1.0.1"
#elif MRC_API_VER_USED < MRC_API_LAST_SUPPORTED_VERSION
#error "MRC_API_VER_USED names an API that these headers no longer have"
#elif MRC_API_VER_USED == MRC_API_LAST_SUPPORTED_VERSION
#warning "MRC_API_VER_USED is the oldest API these headers have; it may go with the next release"
#endif

#define MRC_VENDOR_API_CURRENT_VERSION MRC_API_VER(1, 0, 0)
#define MRC_VENDOR_API_LAST_SUPPORTED_VERSION MRC_API_VER(0, 0, 0)

#ifndef MRC_VENDOR_API_VER_USED
#define MRC_VENDOR_API_VER_USED MRC_VENDOR_API_CURRENT_VERSION
#elif MRC_VENDOR_API_VER_USED == MRC_API_VER_LATEST
#undef MRC_VENDOR_API_VER_USED
#define MRC_VENDOR_API_VER_USED MRC_VENDOR_API_CURRENT_VERSION
#endif

#if MRC_VENDOR_API_VER_USED > MRC_VENDOR_API_CURRENT_VERSION
#error \
    "MRC_VENDOR_API_VER_USED names a vendor API that these headers do not have yet; at most 1.0.0"
#elif MRC_VENDOR_API_VER_USED < MRC_VENDOR_API_LAST_SUPPORTED_VERSION
#error "MRC_VENDOR_API_VER_USED names a vendor API that these headers no longer have"
#elif MRC_VENDOR_API_VER_USED == MRC_VENDOR_API_LAST_SUPPORTED_VERSION
#warning "MRC_VENDOR_API_VER_USED is the oldest vendor API these headers have; it may go"
#endif

#endif /* _MRC_API_VER_H_ */
