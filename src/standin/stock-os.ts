/** The initial operating system of a one-machine cluster's machines. */
export {
  packedStockOs,
  stockKernelArguments,
  stockOsImage,
  stockOsImageAt,
  stockOsRepository,
  writeStockOs,
} from "./cluster/stock-os.ts";
