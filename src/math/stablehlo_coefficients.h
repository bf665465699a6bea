// Polynomials of the functions StableHLO lacks, or whose versions in compilers are not accurate enough. Fitted by Chebyshev
// interpolation in 60 digits; each stays below 1e-17 relative error.
#pragma once

namespace tenon::stablehlo::coefficients {

// erf(x) / x in x^2, |x| <= 1.
inline constexpr double kErf[] = {0x1.20dd750429b6dp+0,  -0x1.812746b0379e7p-2,  0x1.ce2f21a042be2p-4,  -0x1.b82ce31288b47p-6,
                                  0x1.565bcd0e6a2eep-8,  -0x1.c02db40035f1ep-11, 0x1.f9a326f7ac5b1p-14, -0x1.f4d25bf9af03ap-17,
                                  0x1.b9e6c38e5cf3dp-20, -0x1.5f73c3bf14b91p-23, 0x1.fcbb312b48443p-27, -0x1.517ce02f1265fp-30,
                                  0x1.9a0fcb5e22c5bp-34, -0x1.b40e7abf9f000p-38, 0x1.3c01fd3a74542p-42};
// erfc(t) e^(t^2) (1 + 2 t) in (t - 2) / (t + 2), 1 <= t <= 28.
inline constexpr double kErfcTail[] = {
    0x1.46e80e2277953p+0,   -0x1.7bf5ec1700631p-4,  -0x1.5407bebf32445p-3,  0x1.4ffa1e14e2783p-3,   -0x1.bc2b956198830p-5,
    -0x1.074234047eac8p-7,  0x1.1dd2ec9092bf0p-7,   0x1.4d461d2d8ce6dp-10,  -0x1.7de520f0d2ed4p-10, -0x1.dc693319b067ap-12,
    0x1.b0c8843377c07p-13,  0x1.3cc0b4ea09a3ep-13,  -0x1.9526191636fa8p-20, -0x1.318cc1a4391bcp-15, -0x1.c4df9ba820eb5p-17,
    0x1.f20e58cd0cfc6p-19,  0x1.604212cfafd09p-18,  0x1.93b3fe9396a56p-20,  -0x1.b374f17ed328fp-21, -0x1.8ce241a04dae0p-21,
    -0x1.7e381253342b3p-25, -0x1.32735c386f6c3p-22, 0x1.3f37d88d55c97p-22,  0x1.3b527e2bff7f2p-22,  -0x1.581c5976ec61fp-22,
    0x1.4cc862637818ep-24};
// log gamma(1 + e) / e, |e| <= 1/2.
inline constexpr double kLgammaOne[] = {
    -0x1.2788cfc6fb619p-1, 0x1.a51a6625307d2p-1,  -0x1.9a4d55beab2d5p-2, 0x1.151322ac7dbbep-2,  -0x1.a8b9c17aa6802p-3,
    0x1.5b40cb0fc4855p-3,  -0x1.2703a1dca49d9p-3, 0x1.010b36c523ee9p-3,  -0x1.c806709756039p-4, 0x1.9a01dc292eeadp-4,
    -0x1.748c2beab2e19p-4, 0x1.556b9f1bd3bb4p-4,  -0x1.3b1e5a452e83ep-4, 0x1.24889fbacf506p-4,  -0x1.11055d77f9801p-4,
    0x1.00b36c1e271b0p-4,  -0x1.e33d673e67c0fp-5, 0x1.bad978c589529p-5,  -0x1.a33fa4f50c02ep-5, 0x1.e5b198f977938p-5,
    -0x1.cffe0bc18662ep-5, 0x1.5b48e83ba44edp-8,  -0x1.25f238329208dp-8, 0x1.448ab2237ef85p-3,  -0x1.3a2cb924be3d0p-3,
    -0x1.62854cae55f9cp-3, 0x1.58c191555bd4ap-3,  0x1.db8d14b984b43p-3,  -0x1.cd15fe0d2180bp-3};
// log gamma(2 + e) / e, |e| <= 1/2.
inline constexpr double kLgammaTwo[] = {
    0x1.b0ee6072093cep-2,   0x1.4a34cc4a60fa7p-2,   -0x1.13e001a557607p-4,  0x1.51322ac7d7fd2p-6,   -0x1.e404fc218ecffp-8,
    0x1.7add6eae5b8fdp-9,   -0x1.38ac5c2c96006p-10, 0x1.0b36af3424c50p-11,  -0x1.d3fd4bda4f97bp-13, 0x1.a127dd231f4b2p-14,
    -0x1.78de85fa0bf74p-15, 0x1.5806d7786fbc2p-16,  -0x1.3cb5f201754a6p-17, 0x1.2640a5e8ab73ep-18,  -0x1.125408d7ee6ebp-19,
    0x1.edf317afe0c72p-21,  -0x1.d06b46182e294p-22, 0x1.2b4bb069ee6a9p-22,  -0x1.1be56b7e101c6p-23};
// (e^x - 1 - x) / x^2, |x| <= 0.36.
inline constexpr double kExpm1[] = {0x1.0000000000000p-1,  0x1.5555555555555p-3,  0x1.5555555555557p-5,  0x1.1111111111112p-7,
                                    0x1.6c16c16c15424p-10, 0x1.a01a01a019355p-13, 0x1.a01a01ac6b5cep-16, 0x1.71de3a5bfdf1ep-19,
                                    0x1.27e4cda61a086p-22, 0x1.ae6425a1e6e22p-26, 0x1.1f8aa23cc5581p-29, 0x1.61cbe81b6ea87p-33};
// The two zeros of log |gamma| between -3 and -2, each as a double and the rest; and log |gamma| / d around them, d the distance:
// from -2.65 to -2.27, and from -2.86 to -2.65.
inline constexpr double kFirstZero = -0x1.3a7fc9600f86cp+1, kFirstZeroRest = -0x1.55f64f98af8d0p-55;
inline constexpr double kSecondZero = -0x1.5fb410a1bd901p+1, kSecondZeroRest = 0x1.a19a96d2e6f85p-54;
inline constexpr double kLgammaFirstZero[] = {
    0x1.83fe966af535fp+0,  0x1.36eebb002f55dp+2,  0x1.694a6058a7855p+0,  0x1.1718d7ca09e33p+3,   0x1.7339fe04b2b92p+2,
    0x1.8d32f682aef5fp+4,  0x1.809f04ee47355p+4,  0x1.48eaa81416a1cp+6,  0x1.9297adbe52149p+6,   0x1.286fb96058c75p+8,
    0x1.a92e086dbe668p+8,  0x1.1a9d35afd7b64p+10, 0x1.c4cd586e4bd10p+10, 0x1.187605a5c36a5p+12,  0x1.e5ff68d85f046p+12,
    0x1.1e7e017359d67p+14, 0x1.06c95e9a26980p+15, 0x1.2e04739dd1703p+16, 0x1.1e0adde4bf147p+17,  0x1.2a63ea457fae0p+18,
    0x1.340445ac3177cp+19, 0x1.cf5c9fb603109p+20, 0x1.908b342090e61p+21, -0x1.0398cfdb0c489p+20, 0x1.87849bff1e2ddp+21,
    0x1.3e4d041347b5cp+26, 0x1.1a79b9488f729p+27};
inline constexpr double kLgammaSecondZero[] = {
    -0x1.ea12da904b18cp+0,  0x1.3267f3c265a52p+3,   -0x1.4185ac30c8bf9p+4,  0x1.f504accc9f20cp+5,   -0x1.8588458206b3dp+7,
    0x1.4373f7cc6ac16p+9,   -0x1.12239bde0f967p+11, 0x1.dba65e2ba23adp+12,  -0x1.a2d24ff3a8110p+14, 0x1.758172b963533p+16,
    -0x1.506c74bd4c971p+18, 0x1.318f13985f094p+20,  -0x1.1774e1839207ap+22, 0x1.011bf4acf252dp+24,  -0x1.dbc4fee8ead28p+25,
    0x1.b9f5e6510f6d2p+27,  -0x1.9918619c9dd55p+29, 0x1.7f8259a480857p+31,  -0x1.829a2bb45c66cp+33, 0x1.5e9d64f15a29ap+35,
    -0x1.5ad7980295300p+36, 0x1.17581686e011ep+39,  -0x1.b19e239706da3p+42, 0x1.04d26479bee62p+43,  0x1.128d1045274eap+47,
    0x1.bdec3d038448ap+47,  -0x1.b7dbc37f8ce01p+51};

}  // namespace tenon::stablehlo::coefficients
